"""Yarus day after day: a Prefect server, its deployments, a worker, and the report pages."""

if __name__ == "deployments":
    raise ImportError("`deployments` is now `yarus.deployments`; use `from yarus.deployments import …`")
