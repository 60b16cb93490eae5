"""The counting rules of listeners, days and programs: R22 to R36, each by its name."""

from datetime import UTC, date, datetime, timedelta

import pytest

from tests.unit.stats_support import (
    APP,
    NOON,
    OSLO,
    SHOW,
    counting,
    days,
    line,
    listeners,
    tally_of,
    verdicts,
    windows,
)

APPLE_PROBE = "AppleCoreMedia/1.0.0.20D67 (iPhone; U; CPU OS 16_3_1 like Mac OS X; nb_no)"


def test_r22_a_listener_is_an_address_or_the_first_half_of_one_and_the_user_agent() -> None:
    assert listeners(line(ip="192.0.2.1"), line(ip="192.0.2.2")) == 2
    assert listeners(line(ip="2001:db8:1:2::1"), line(ip="2001:db8:1:2:ffff::2")) == 1
    assert listeners(line(ip="2001:db8:1:2::1"), line(ip="2001:db8:1:3::1")) == 2
    assert listeners(line(agent=APP + " "), line(agent=APP)) == 2


def test_r23_ipv4_that_is_mapped_into_ipv6_is_ipv4() -> None:
    assert listeners(line(ip="::ffff:192.0.2.1"), line(ip="192.0.2.1"), line(ip="[::ffff:192.0.2.1]:443")) == 1


def test_r24_a_listener_has_one_window_a_day_however_often_it_asks() -> None:
    assert len(windows(*(line(at=NOON + timedelta(minutes=n)) for n in range(20)))) == 1


def test_r25_six_user_agents_behind_one_address_are_six_listeners() -> None:
    assert listeners(*(line(agent=f"App{n % 6}/1") for n in range(10))) == 6


def test_r26_the_day_is_the_local_one_of_the_requests_start() -> None:
    midnight = datetime(2026, 12, 1, tzinfo=OSLO)
    slow = line(at=midnight - timedelta(seconds=1), duration=7200.0)  # logged at 02:00

    assert days(slow) == [date(2026, 11, 30)]
    assert days(line(at=midnight)) == [date(2026, 12, 1)]
    assert days(line(at=datetime(2026, 11, 30, 23, 0, 4, tzinfo=UTC))) == [date(2026, 12, 1)]


@pytest.mark.parametrize("night", [date(2026, 3, 29), date(2026, 10, 25), date(2026, 12, 31)])
def test_r26_the_days_of_the_clock_change_and_the_year_end_keep_their_requests(night: date) -> None:
    start = datetime(night.year, night.month, night.day, tzinfo=OSLO)
    end = datetime.fromordinal(night.toordinal() + 1).replace(tzinfo=OSLO)
    hours = round((end.timestamp() - start.timestamp()) / 3600)
    every = [line(at=start.timestamp() + 1800 + 3600 * n, agent=f"App{n}/1") for n in range(-1, hours + 1)]

    found = days(*every)

    assert hours == {3: 23, 10: 25, 12: 24}[night.month]
    assert (found.count(night), found[0], found[-1]) == (hours, night - timedelta(1), night + timedelta(1))


def test_r27_around_midnight_a_listener_counts_on_both_days() -> None:
    day = datetime(2026, 11, 30, tzinfo=OSLO)
    example = [day.replace(hour=22), day.replace(day=30) + timedelta(hours=27), day + timedelta(hours=46.25),
               day + timedelta(hours=71.25)]  # fmt: skip

    assert len(days(line(at=datetime(2026, 11, 29, 23, 59, tzinfo=OSLO)), line(at=day + timedelta(minutes=1)))) == 2
    assert [found.day for found in days(*map(lambda at: line(at=at), example))] == [30, 1, 2]


def test_r30_bots_and_what_calls_itself_one_are_not_counted() -> None:
    bots = ("Googlebot/2.1", "curl/7.88.1", "python-requests/2.31", "SomethingBot/1.0", "my CRAWLER", "a-spider/2")
    people = (
        "AppleCoreMedia/1.0",
        "okhttp/4.9",
        "ExoPlayerLib/2.18",
        "stagefright/1.2 (Linux;Android 7.0)",
        "Ukjent/1",
    )

    assert verdicts(*(line(agent=agent) for agent in bots)) == {"bot": len(bots)}
    assert verdicts(*(line(agent=agent) for agent in people)) == {"counted": len(people)}


def test_r32_what_a_watch_fetches_beside_its_phone_is_not_counted_but_its_players_are() -> None:
    twice = (
        "atc/1.0 watchOS/9.4 model/Watch6,1 hwp/t8301 build/20T253 (6; dt:241)",
        "(null)/(null) watchOS/8.5 model/Watch5",
    )
    players = (
        "AppleCoreMedia/1.0.0.20T253 (Apple Watch; U; CPU OS 9_4 like Mac OS X)",
        "Overcast (+http://overcast.fm/; Apple Watch podcast app)",
    )

    assert verdicts(*(line(agent=agent) for agent in (*twice, *players))) == {"apple_watch": 2, "counted": 2}


def test_r33_spotifys_fetcher_is_a_bot_and_its_app_is_not() -> None:
    assert verdicts(line(agent="Spotify/1.0"), line(agent="Spotify/8.8.12 iOS/16 (iPhone14,5)")) == {
        "bot": 1,
        "counted": 1,
    }


def test_r34_apples_two_names_behind_one_address_are_two_listeners() -> None:
    both = line(agent="Podcasts/1650 CFNetwork/1408"), line(agent=APPLE_PROBE)

    assert sorted((key[3].name, key[3].kind, key[3].device) for key, _ in windows(*both)) == [
        ("Apple Podcasts", "app", "Apple device"), ("AppleCoreMedia", "library", "iPhone"),
    ]  # fmt: skip


def test_r36_a_list_of_data_centres_is_looked_up_whatever_its_length() -> None:
    nets = [f"10.{n // 256}.{n % 256}.0/25" for n in range(5000)]

    assert verdicts(line(ip="10.5.7.126"), line(ip="10.5.7.129"), deny=nets) == {"deny_ip": 1, "counted": 1}


def test_lines_of_other_loggers_and_of_closed_days_are_told_apart() -> None:
    other = line(logger="http.log.error"), line(logger="tls.obtain", request={"uri": "/x"})
    closed = counting(closed={NOON.date()})

    assert verdicts(*other) == {"not_access": 2}
    assert verdicts(line(), line(at=NOON + timedelta(days=1)), rules=closed) == {"late": 1, "counted": 1}


def test_an_address_that_is_none_and_an_impossible_time_make_a_bad_line_at_its_place() -> None:
    good = line()
    tally = tally_of(good, line(ip="unix:@"), line(at=12.0), line(duration=-3.0), line(size=-1))

    assert tally.bad == {"ip": 1, "ts": 2, "schema": 1}
    assert tally.bad_lines[0].offset == len(good)
    assert APP not in tally.bad_lines[0].sample


def test_a_forwarded_header_alone_never_changes_the_listener() -> None:
    forged = line(request={"headers": {"User-Agent": [APP], "X-Forwarded-For": ["198.51.100.1"]}})

    assert listeners(line(), forged) == 1
    old = line(request={"remote_ip": "", "client_ip": "", "remote_addr": "[2001:db8::1]:443"})
    assert listeners(old, line(ip="2001:db8::2")) == 1


def test_the_referrer_is_kept_as_the_host_of_the_earliest_request() -> None:
    later = line(at=NOON + timedelta(hours=1), referer="https://later.example.no/")
    first = line(referer="https://user:pw@Player.Example.no:443/secret?token=1")
    ((key, one),) = windows(first, later)
    ((_, other),) = windows(later, first)

    assert one.referrer == other.referrer == "player.example.no"
    assert key[1].show == SHOW
