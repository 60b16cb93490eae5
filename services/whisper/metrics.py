"""Prometheus metrics of the transcription, beside those of every worker."""

from prometheus_client import Counter, disable_created_metrics

from services.whisper.guards import REASONS


class TranscriptionMetrics:
    """The real-time factor is the ratio of the two rates. Made once per process."""

    def __init__(self, model: str, device: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # or each counter counts twice as a series
        labels = ["model", "device"]
        self.audio_seconds = Counter(
            "whisper_audio_seconds_total", "Audio in units transcribed by this process", labels
        ).labels(model, device)
        self.processing_seconds = Counter(
            "whisper_processing_seconds_total", "Time spent on these units, decoding included", labels
        ).labels(model, device)
        self.resumed_units = Counter(
            "whisper_resumed_units_total", "Units taken over from an interrupted run", labels
        ).labels(model, device)
        dropped = Counter(
            "whisper_dropped_segments_total", "Segments taken for the model's invention", [*labels, "reason"]
        )
        self.dropped_segments = {reason: dropped.labels(model, device, reason) for reason in REASONS}
