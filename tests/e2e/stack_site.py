"""The admin view of the running stack, for a browser: accounts made by the command line, words of both languages."""

import re
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from playwright.sync_api import Page, expect

from services.admin.words import Speech
from tests.e2e.running_stack import RunningStack
from tests.services.admin_site import OPERATOR, VIEWER
from tests.waiting import wait_until

LOCALES = {"nb": "nb-NO", "en": "en-GB"}
JOB_PAGE = re.compile(r"/jobs/([0-9a-f-]{36})$")


class StackSite:
    """As AdminSite is for `logged_in_page`: an address, and sessions for accounts."""

    def __init__(self, stack: RunningStack) -> None:
        self.stack, self.url = stack, f"http://127.0.0.1:{stack.admin_port}"
        for name, role in ((OPERATOR, "operator"), (VIEWER, "viewer")):
            stack.jobs("account", "add", name, "--role", role)

    def close(self) -> None:
        """Takes the accounts away."""
        self.stack.sql(f"select drop_account(name) from unnest(array['{OPERATOR}', '{VIEWER}']) as name")

    def token(self, account: str) -> str:
        """The cookie of a new session."""
        token = f"{account}-{datetime.now(UTC).timestamp()}"
        digest = f"sha256(convert_to('{token}', 'UTF8'))"
        self.stack.sql(f"select open_session('{account}', {digest}, '1 hour', '1 hour')")
        return token

    def insert(self, path: str, job_type: str = "whisper_transcribe", language: str = "no") -> str:
        """A job by a bare INSERT, as another program makes one."""
        payload = f"jsonb_build_object('path', '{path}', 'language', '{language}')"
        statement = f"insert into job_queue (job_type, payload) values ('{job_type}', {payload}) returning id"
        return self.stack.sql(statement).split()[0]

    def write_log(self, lines: bytes) -> None:
        """Lines of Caddy's access log into the volume that the statistics read."""
        volume = f"{self.stack.environ['COMPOSE_PROJECT_NAME']}_logs"
        self.stack.run(
            "docker", "run", "--rm", "--interactive", "--volume", f"{volume}:/logs", "--entrypoint", "sh",
            "postgres:17-trixie", "-c", "cat >>/logs/access.log", input=lines.decode(),
        )  # fmt: skip


class Operator:
    """Kari, who sees the view in one language and acts; each act is looked up in the audit trail."""

    def __init__(self, page: Page, language: str) -> None:
        self.page, self.language = page, language
        self.say = Speech(language, ZoneInfo("Europe/Oslo"), datetime.now(UTC)).t

    def press(self, key: str, **values: object) -> None:
        """A button of these words."""
        self.page.get_by_role("button", name=self.say(key, **values)).first.click()

    def follow(self, key: str, **values: object) -> None:
        """A link of these words, in the page's content."""
        self.page.locator("main").get_by_role("link", name=self.say(key, **values)).first.click()

    def is_told(self, key: str, **values: object) -> None:
        """The page tells that this was done."""
        expect(self.page.locator(".notice[role=status]")).to_have_text(self.say(key, **values))

    def sees(self, *words: str, where: str = "main", timeout: float = 30_000) -> None:
        """These words come to stand there, without a reload."""
        for word in words:
            expect(self.page.locator(where)).to_contain_text(word, timeout=timeout)

    def job_id(self) -> str:
        """The job whose page this is."""
        wait_until(lambda: JOB_PAGE.search(self.page.url), 10, what="the page of a job")
        found = JOB_PAGE.search(self.page.url)
        assert found
        return found[1]

    def enqueue(self, job_type: str, **fields: str) -> str:
        """By the form, from the navigation; returns the new job's id."""
        self.page.get_by_role("link", name=self.say("nav.enqueue"), exact=True).click()
        self.page.get_by_role("link", name=job_type).click()
        for name, value in fields.items():
            self.page.locator(f"#p-{name.replace('_', '-5f')}").fill(value)
        self.press("enqueue.send")
        self.is_told("jobs.made_created")
        return self.job_id()

    def finds_in_the_trail(self, action: str, subject: str, detail: str = "") -> None:
        """What was done stands on the page of actions, with the name; the newest of its kind."""
        self.page.goto(f"/audit?actor={OPERATOR}&action={action}")
        row = self.page.locator("tbody tr").first
        expect(row).to_contain_text(OPERATOR)
        expect(row).to_contain_text(subject)
        expect(row).to_contain_text(detail)
        expect(row.locator("td.mono")).to_have_text(action)

    def table(self, page: str, caption: str) -> dict[str, Any]:
        """First and last cell of each row of the table below a heading."""
        self.page.goto(page)
        rows = self.page.locator(f"{caption} tbody tr")
        cells = [rows.nth(place).locator("th, td").all_text_contents() for place in range(rows.count())]
        return {row[0]: row[-1] for row in cells}
