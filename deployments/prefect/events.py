"""Emit events about evaluations for Prefect's automations: finished, regressed, incidents …"""

from collections.abc import Mapping
from typing import Any

from yarus.tasks.config.redaction import redact_urls
from yarus.tasks.config.settings import get_settings
from yarus.tasks.evaluation.summary import EvaluationSummary

EVALUATION, INCIDENT, NIGHT = "yarus.evaluation", "yarus.incident", "yarus.night"


def emit_finished(summary: EvaluationSummary, changes: Mapping[str, Any]) -> None:
    """Emit `yarus.evaluation.finished`, and `.regressed`, `.inconclusive` or `.invalid` if it is.

    Args:
        summary: the summary of the evaluation.
        changes: the changes since the accepted evaluation, from `read_changes`.
    """
    worse = [
        {"metric": name, "difference": change["difference"], "p": change.get("p_holm")}
        for name, change in changes["metrics"].items()
        if change["verdict"] == "regressed" and change["p_holm"] is not None
    ]
    problem = changes["problem"] and changes["problem"][get_settings().language]
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
        emit(f"{EVALUATION}.{name}", summary["evaluation_id"], payload, flow_run_id=summary["flow_run_id"])


def emit(event: str, name: str, payload: Mapping[str, Any], *, flow_run_id: str | None) -> None:
    """Emit an event if a flow runs; Prefect logs what it cannot send, and nothing fails.

    Args:
        event: `yarus.evaluation.…`, `yarus.incident.…` or `yarus.night.…`.
        name: the id of the evaluation, incident or night.
        payload: the data for automations; `link` is added if it is missing.
        flow_run_id: the flow run of the evaluation or the night.
    """
    from prefect.events import emit_event  # imported here because listing incidents emits nothing
    from prefect.runtime import flow_run

    current_run_id = flow_run.get_id()
    if current_run_id is None:
        return
    run_id = flow_run_id or current_run_id
    evaluation_id = payload.get("evaluation_id", name)
    # An evaluation that failed has no page.
    page = None if payload["verdict"] == "failed" else report_page_url(f"{evaluation_id}.html")
    emit_event(
        event,
        resource={"prefect.resource.id": f"{event.rpartition('.')[0]}.{name}", "prefect.resource.name": name},
        related=[{"prefect.resource.id": f"prefect.flow-run.{run_id}", "prefect.resource.role": "flow-run"}],
        payload={"link": page or run_page_url(run_id), **payload, "evaluation_id": evaluation_id},
    )


def report_page_url(name: str) -> str | None:
    """Return the address of a report page; None if none are served."""
    report_url = get_settings().report_url
    return redact_urls(f"{report_url.rstrip('/')}/{name}") if report_url else None


def run_page_url(flow_run_id: str) -> str:
    """Return the address of a flow run in Prefect's UI."""
    from prefect.utilities.urls import url_for

    return redact_urls(url_for("flow-run", obj_id=flow_run_id) or "")
