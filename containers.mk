# Targets around the containers of compose.yaml; the Makefile includes this file.
COMPOSE := docker compose
ROLE ?= jobbko_operator
# Restarts those of the services $(1) (a pattern) that run.
RESTART = running=$$($(COMPOSE) ps --services --filter status=running | grep -xE '$(1)' || true); \
  [[ -z "$$running" ]] || $(COMPOSE) restart --no-deps $$running
# The services that neither run as they should nor ended well.
UNWELL = $(COMPOSE) ps --all --format '{{.Service}} {{.State}} {{.Health}} {{.ExitCode}}' | \
  sed -E '/ (running healthy|exited) +0$$/d; s/ .*//' | sort -u

.PHONY: up down logs ps psql password new-password reset-password key secret add backup restore stack sbom

# Two checkouts have one name, so that a second one would exchange the first one's containers for its own.
# Then `secrets` alone: with a new image of it, Compose would exchange whatever depends on it, the database before the
# workers, and stop these while it is away, so that they could not give their jobs back. What is started anew again and
# again may never be seen unwell, so the waiting has an end; a large model on a slow disk takes some minutes.
up:  ## build and start everything, wait until it is well (SCALE=3: that many whisper workers)
	@$(COMPOSE) ps --all --format '{{.Label "com.docker.compose.project.working_dir"}}' | sort -u | \
	  while IFS= read -r folder; do [[ "$$folder" -ef . ]] || { echo "up: the stack of this name runs from $$folder. Next:" \
	    'make down, to have it from here; for one beside it, "A second stack" in docs/operations.md' >&2; exit 1; }; done
	@$(COMPOSE) up --build --detach --no-deps --quiet-pull secrets
	@$(COMPOSE) up --build --detach --wait --wait-timeout 300 $(if $(SCALE),--scale whisper=$(SCALE)) || \
	  { $(COMPOSE) ps --all; unwell=$$($(UNWELL)); [[ -z "$$unwell" ]] || $(COMPOSE) logs --tail 3 $$unwell; \
	    echo 'up: not all is well, see above. Next: "When the first start fails" in docs/operations.md'; exit 1; } >&2
	@$(COMPOSE) ps

down:  ## stop and remove the containers; the data stays in its volumes
	@$(COMPOSE) down

logs:  ## follow the logs (SERVICE=whisper: of that one only)
	@$(COMPOSE) logs --follow --tail 100 $(SERVICE)

ps:  ## list the containers and how they are
	@$(COMPOSE) ps --all

# The password goes through the environment, not through an argument that every process list shows.
psql:  ## a psql in the database, as jobbko_operator (ROLE=jobbko_reader, ROLE=postgres, …)
	@password=$$($(COMPOSE) run --rm --no-deps -T secrets python -m services.admin.secrets show "$(ROLE)"); \
	  PGPASSWORD="$$password" $(COMPOSE) exec $(if $(SQL),-T) -e PGPASSWORD db psql -h 127.0.0.1 -U "$(ROLE)" -d jobbko $(if $(SQL),-c "$$SQL")

password: ROLE = admin
password:  ## show the password of the admin view's account `admin` (ROLE=jobbko_operator, …: that role's)
	@$(COMPOSE) run --rm --no-deps -T secrets python -m services.admin.secrets show "$(ROLE)"

# A line with $(MAKE) is run by `make -n`, too, so it holds nothing else.
new-password:  ## give a role a new password and restart the service that uses it (ROLE=worker_whisper, …)
	@$(COMPOSE) run --rm --no-deps -T secrets python -m services.admin.secrets renew "$(ROLE)"
	@$(if $(filter postgres,$(ROLE)),$(MAKE) reset-password)
	@$(if $(filter postgres,$(ROLE)),,$(COMPOSE) run --rm --no-deps -T migrate)
	@$(call RESTART,$(patsubst worker_%,%,$(ROLE:jobbko_%=%))$(if $(filter worker_whisper,$(ROLE)),|watch))

key: NAME = openrouter_api_key
key: secret  ## store the API key of OpenRouter (asked for, or read from standard input) and restart who uses it

secret:  ## store another secret that only you have (NAME=alert_smtp_password, …), and restart who uses it
	@if [[ -t 0 ]]; then read -rsp '$(NAME) (empty: take it away): ' secret; echo; else read -r secret || true; fi; \
	  $(COMPOSE) run --rm --no-deps -T secrets python -m services.admin.secrets give "$(NAME)" <<<"$$secret"
	@$(call RESTART,$(if $(filter openrouter_api_key,$(NAME)),openrouter|research,delivery))

# In single-user mode no password is asked for. The database is away for some seconds; workers wait for it.
reset-password:  ## give the database the superuser's password of the volume `secrets`, after that was lost
	@$(COMPOSE) run --rm --no-deps -T secrets
	@$(COMPOSE) stop db
	@$(COMPOSE) run --rm --no-deps -T --user postgres --entrypoint bash db -c \
	  'postgres --single -D "$$PGDATA" postgres >/dev/null <<<"alter role postgres password '"'"'$$(</run/secrets/superuser)'"'"'"' \
	  && done=0 || done=$$?; $(COMPOSE) up --detach --no-deps --wait db; exit $$done

add:  ## put a file into the media folder (FILE=episode.mp3, AS=2026/12.mp3 or AS=2026/: its name there, REPLACE=1)
	@test -f "$${FILE:-}" || { echo "add: FILE=$${FILE:-} is no file. Next: make add FILE=path/to/episode.mp3" >&2; exit 1; }
	@name=$${AS:-}; [[ -n "$$name" && "$$name" != */ ]] || name+=$$(basename "$$FILE"); \
	  $(COMPOSE) run --rm --no-deps -T add $(if $(REPLACE),--replace) -- "$$name" <"$$FILE"

TO ?= backups
backup:  ## write the database into a file while everything runs on (TO=folder; then keep it on another machine)
	@name="jobbko-$$(date -u +%Y%m%dT%H%M%SZ)"; mkdir -p "$(TO)"; draft="$(TO)/$$name.part"; umask 077; mkdir "$$draft"; \
	  trap 'rm -rf "$$draft"' EXIT; \
	  $(COMPOSE) exec -T db bash -c "$$(cat db/backup.sh)" backup "$$(cat db/count_rows.sql)" | \
	    { IFS= read -r rows && echo "$$rows" >"$$draft/$$name.rows" && cat >"$$draft/$$name.dump"; } || \
	    { echo "backup: none was made in $(TO), see above. Next: is db healthy (make ps)? Is there room (df -h $(TO))?" >&2; \
	      exit 1; }; \
	  mv "$$draft/$$name.rows" "$$draft/$$name.dump" "$(TO)"; \
	  echo "backup: $(TO)/$$name.dump, $$(du -h "$(TO)/$$name.dump" | cut -f1), and its .rows: $$(<"$(TO)/$$name.rows")"

# Migrate makes the roles that the dump grants to, and afterwards what is newer than the dump.
restore:  ## put a backup into an empty database, compare all rows, bring it to this version (FROM=backups/….dump)
	@test -f "$${FROM:-}" && test -f "$${FROM%.dump}.rows" || \
	  { echo "restore: FROM=$${FROM:-} is no backup with its .rows beside it. Next: make restore FROM=backups/jobbko-….dump" >&2; exit 1; }
	@$(COMPOSE) up --detach --wait db
	@$(COMPOSE) run --rm -T migrate
	@$(COMPOSE) exec -T db bash -c "$$(cat db/restore.sh)" restore "$$(<"$${FROM%.dump}.rows")" "$$(cat db/count_rows.sql)" <"$$FROM"
	@$(COMPOSE) run --rm -T migrate
	@echo 'restore: done. Next: make up'

STACK_FILES ?= compose.yaml
STACK ?= jobbko
stack:  ## deploy to a Docker Swarm what compose.yaml describes (STACK_FILES="compose.yaml mine.yaml"; see docs/scaling.md)
	@$(COMPOSE) $(addprefix -f ,$(STACK_FILES)) config --format json | python3 -m services.admin.stack_file | \
	  docker stack deploy --detach=true --resolve-image never -c - "$(STACK)"

sbom:  ## write what is in each image that is built here, as CycloneDX, into the folder sbom/
	@mkdir -p sbom; for image in $$($(COMPOSE) config --images | grep ^jobbko- | sort -u); do name=$${image%%:*}; \
	  docker run --rm --interactive --network none --entrypoint python "$$image" - "$$name" "$${image#*:}" \
	    <services/admin/sbom.py >"sbom/$$name.json"; \
	  echo "sbom/$$name.json: $$(grep -c '"purl"' "sbom/$$name.json") components"; done
