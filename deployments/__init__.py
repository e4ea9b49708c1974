"""Yarus day after day: a Prefect server, its deployments, a worker, and the report pages."""

if __name__ == "deployments":
    raise ImportError("the packages of Yarus are imported as yarus: from yarus.deployments …")
