-- What the gauges are made of; the functions stand in db/init/0021_gauges.sql.

-- name: queue_gauges
select * from queue_gauges()

-- name: schedule_gauges
select * from schedule_gauges()

-- name: database_gauges
select * from database_gauges()

-- name: table_gauges
select * from table_gauges()

-- name: spending_gauges
select * from spending_gauges()
