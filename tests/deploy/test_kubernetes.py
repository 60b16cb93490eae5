"""The example for Kubernetes: its kinds by the schemas of Kubernetes, those of KEDA by fields that its scaler has."""

from typing import Any

import kubernetes_validate
import msgspec
import pytest
import yaml

from sidelinja_jobs.job_type import JobType
from tests.databases import ROOT
from tests.deploy.stack import code_settings

VERSION = "1.37"
PARTS = list(yaml.safe_load_all((ROOT / "docs" / "examples" / "kubernetes.yaml").read_text()))
KEDA = "keda.sh/v1alpha1"


class Closed(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A part of a KEDA object: another field is a spelling mistake, and KEDA would ignore it."""


class Named(Closed):
    name: str


class Trigger(Closed):
    type: str
    metadata: dict[str, str]  # numbers, too, are written as text
    authenticationRef: Named | None = None  # noqa: N815 - KEDA's name


class Scaling(Closed):
    """`spec` of a ScaledObject, as far as the postgresql scaler uses it."""

    scaleTargetRef: Named  # noqa: N815
    minReplicaCount: int  # noqa: N815
    maxReplicaCount: int  # noqa: N815
    pollingInterval: int  # noqa: N815
    cooldownPeriod: int  # noqa: N815
    triggers: list[Trigger]


class Reference(Closed):
    parameter: str
    name: str
    key: str


class Authentication(Closed):
    secretTargetRef: list[Reference]  # noqa: N815


def spec(kind: str) -> Any:
    (part,) = [part for part in PARTS if part["kind"] == kind]
    return part["spec"]


@pytest.mark.parametrize("part", [part for part in PARTS if part["apiVersion"] != KEDA], ids=lambda part: part["kind"])
def test_a_kind_of_kubernetes_passes_its_schema(part: dict[str, Any]) -> None:
    assert kubernetes_validate.validate(part, VERSION, strict=True) == VERSION


def test_a_wrong_field_would_be_seen() -> None:
    wrong = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replica": 1}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSION, strict=True)


def test_kedas_kinds_name_what_is_there() -> None:
    """The database's address comes from the secret, and the scaler asks for it under the name that KEDA's has."""
    scaling = msgspec.convert(spec("ScaledObject"), Scaling)
    (reference,) = msgspec.convert(spec("TriggerAuthentication"), Authentication).secretTargetRef
    secrets = {part["metadata"]["name"]: part["stringData"] for part in PARTS if part["kind"] == "Secret"}
    deployments = {part["metadata"]["name"] for part in PARTS if part["kind"] == "Deployment"}
    (trigger,) = scaling.triggers

    assert scaling.scaleTargetRef.name in deployments
    assert (trigger.type, reference.parameter) == ("postgresql", "connection")
    assert trigger.metadata.keys() == {"query", "targetQueryValue", "activationTargetQueryValue"}
    assert trigger.authenticationRef is not None
    assert trigger.authenticationRef.name in {
        part["metadata"]["name"] for part in PARTS if part["kind"] == "TriggerAuthentication"
    }
    assert reference.key in secrets[reference.name]


def test_the_worker_there_gets_what_it_asks_for() -> None:
    """Settings that exist, its own login, and a grace that lets it give its job back."""
    pod = spec("Deployment")["template"]["spec"]
    (container,) = pod["containers"]
    environment = {entry["name"]: entry["value"] for entry in container["env"]}
    job_type = JobType.load(ROOT / "services" / "whisper")

    assert environment.keys() - code_settings().keys() <= {"HOME", "DATABASE_PASSWORD_FILE"}
    assert f"//{job_type.role}@" in environment["DATABASE_URL"]
    assert pod["terminationGracePeriodSeconds"] > job_type.drain_seconds
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
