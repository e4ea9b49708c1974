"""What Prefect is told of evaluations, as events for automations to act on: finished, regressed, incidents …"""

from collections.abc import Mapping
from typing import Any

from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import settings
from yarus.tasks.evaluation.summary import EvaluationSummary

EVALUATION, INCIDENT, NIGHT = "yarus.evaluation", "yarus.incident", "yarus.night"


def tell_finished(summary: EvaluationSummary, changes: Mapping[str, Any]) -> None:
    """Emits `yarus.evaluation.finished`, and `.regressed`, `.inconclusive` or `.invalid` where it is.

    Args:
        summary: of the evaluation.
        changes: since the accepted evaluation, as `changes_since` gives them.
    """
    worse = [
        {"metric": name, "difference": change["difference"], "p": change.get("p_holm")}
        for name, change in changes["metrics"].items()
        if change["verdict"] == "regressed" and change["p_holm"] is not None
    ]
    problem = changes["problem"] and changes["problem"][settings().language]
    verdict = "regressed" if worse else "inconclusive" if problem else "good"
    verdict = "invalid" if summary["state"] == "invalid" else verdict
    payload = {
        "verdict": verdict,
        "since": changes["since"],
        "changes": worse,
        "error": summary["error"] or problem,
        "tier": summary["tier"],
        "source": summary["source"],
        "state": summary["state"],
        "sut_label": summary["sut_label"],
        "coverage": summary["coverage"],
        "metrics": {name: metric["value"] for name, metric in summary["metrics"].items()},
    }
    for name in ("finished", *([verdict] if verdict != "good" else [])):
        tell(f"{EVALUATION}.{name}", summary["evaluation_id"], payload, flow_run_id=summary["flow_run_id"])


def tell(event: str, name: str, payload: Mapping[str, Any], *, flow_run_id: str | None) -> None:
    """Emits an event, if a flow runs; Prefect logs what it cannot send, and nothing fails.

    Args:
        event: `yarus.evaluation.…`, `yarus.incident.…` or `yarus.night.…`.
        name: of the evaluation, incident or night.
        payload: what automations can use; `link` is added to it where it has none.
        flow_run_id: of the evaluation's flow run, or the night's.
    """
    from prefect.events import emit_event  # here, because whoever lists incidents emits none
    from prefect.runtime import flow_run

    running = flow_run.get_id()
    if running is None:
        return
    run_id = flow_run_id or running
    of = payload.get("evaluation_id", name)
    # An evaluation that failed has no page.
    page = None if payload["verdict"] == "failed" else report_page(f"{of}.html")
    emit_event(
        event,
        resource={"prefect.resource.id": f"{event.rpartition('.')[0]}.{name}", "prefect.resource.name": name},
        related=[{"prefect.resource.id": f"prefect.flow-run.{run_id}", "prefect.resource.role": "flow-run"}],
        payload={"link": page or run_page(run_id), **payload, "evaluation_id": of},
    )


def report_page(name: str) -> str | None:
    """Where a report page is read; None where none are served."""
    served = settings().report_url
    return redact_urls(f"{served.rstrip('/')}/{name}") if served else None


def run_page(flow_run_id: str) -> str:
    """The page of a flow run in Prefect's UI."""
    from prefect.utilities.urls import url_for

    return redact_urls(url_for("flow-run", obj_id=flow_run_id) or "")
