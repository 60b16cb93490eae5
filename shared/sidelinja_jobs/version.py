"""The version of this code, shown in logs, metrics and the table worker."""

VERSION = "0.1.0"
