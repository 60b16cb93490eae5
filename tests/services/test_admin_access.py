"""Who gets into the admin view, and what each may do there."""

from typing import Any

from tests.services.admin_site import AdminSite


def test_nobody_sees_a_page_without_a_name(admin_site: AdminSite) -> None:
    answer = admin_site.nobody.get("/")

    assert (answer.status_code, answer.headers["location"]) == (303, "/login")


def test_an_operator_sees_the_overview(admin_site: AdminSite) -> None:
    answer = admin_site.operator.get("/")

    assert answer.status_code == 200
    assert "test_job" in answer.text


def test_a_browser_logs_in_by_the_form(admin_site: AdminSite, browser_page: Any) -> None:
    browser_page.goto("/")
    assert "Now" in browser_page.title()
