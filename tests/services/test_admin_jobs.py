"""The list of jobs: filters, places, what is shown of a row."""

from tests.services.admin_site import AdminSite


def test_the_pages_answer(admin_site: AdminSite) -> None:
    job = admin_site.database.enqueue("whisper_transcribe", payload={"path": "a.mp3"})
    for path in ("/jobs", "/errors", "/enqueue", "/enqueue/whisper_transcribe", f"/jobs/{job}", f"/jobs/{job}/cancel",
                 f"/jobs/{job}/edit", "/jobs/export.csv", "/jobs/all?action=cancel", "/jobs?status=error", "/jobs?q=mp3"):  # fmt: skip
        answer = admin_site.operator.get(path)
        assert answer.status_code == 200, (path, answer.text[:2000])
