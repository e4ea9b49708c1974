"""Privileged roles: a role with rights over its server must not run another role's code when it reads.

PostgreSQL runs a view, an index on an expression, a cast, or a function that hides PostgreSQL's own with the rights of
the reading role. A read-only transaction prevents writing by SQL, but not a superuser's COPY … TO PROGRAM. So such a
role reads only tables without foreign code. Code of a superuser or of the role itself is not foreign.
"""

from collections.abc import Iterable
from typing import Any

import psycopg
from sqlalchemy import Connection, Table, text

from yarus.db.errors import InputError
from yarus.db.messages import Words

PRIVILEGED_ROLE_QUERY = """
    SELECT role.rolname || CASE WHEN role.rolsuper THEN ', a superuser' ELSE ', a member of ' || string_agg(
        dangerous.rolname, ', ' ORDER BY dangerous.rolname) END
    FROM pg_catalog.pg_roles AS role LEFT JOIN pg_catalog.pg_roles AS dangerous ON dangerous.rolname IN
        ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')
        AND pg_catalog.pg_has_role(role.oid, dangerous.oid, 'MEMBER')
    WHERE role.rolname IN (SESSION_USER, CURRENT_USER) AND (role.rolsuper OR dangerous.oid IS NOT NULL)
    GROUP BY role.rolname, role.rolsuper
"""
"""Selects a role of this session with access beyond the database, and why; no row if there is none."""

FOREIGN_CODE_QUERY = """
    WITH written AS (
        SELECT code.oid, code.proname AS name, code.pronamespace AS namespace
        FROM pg_catalog.pg_proc AS code JOIN pg_catalog.pg_roles AS owner ON owner.oid = code.proowner
        WHERE NOT owner.rolsuper AND owner.rolname <> SESSION_USER
    )
"""
# S608: all of it is in this file.
SHADOWING_QUERY = f"""{FOREIGN_CODE_QUERY}
    SELECT pg_catalog.format('function %%I.%%I', nspname, written.name)
    FROM written JOIN pg_catalog.pg_namespace AS schema ON schema.oid = written.namespace
    WHERE nspname = ANY (%(path)s) AND nspname <> 'pg_catalog' AND EXISTS (
        SELECT FROM pg_catalog.pg_proc AS known WHERE known.proname = written.name AND known.oid NOT IN (
            SELECT oid FROM written))
    UNION ALL
    SELECT pg_catalog.format('operator %%I.%%s', nspname, oprname)
    FROM pg_catalog.pg_operator AS operator JOIN pg_catalog.pg_namespace AS schema ON schema.oid = oprnamespace
    WHERE nspname = ANY (%(path)s) AND nspname <> 'pg_catalog' AND oprcode IN (SELECT oid FROM written)
    LIMIT 1
"""  # noqa: S608
"""Selects foreign code that a name in a statement could call instead of PostgreSQL's or an extension's."""

RELATION_CODE_QUERY = f"""
    WITH RECURSIVE relation AS (
        SELECT oid, relname, relkind FROM pg_catalog.pg_class WHERE oid = CAST(:relation AS pg_catalog.regclass)
        UNION
        SELECT child.oid, child.relname, child.relkind FROM relation
        JOIN pg_catalog.pg_inherits ON inhparent = relation.oid
        JOIN pg_catalog.pg_class AS child ON child.oid = inhrelid
    ),
    {FOREIGN_CODE_QUERY.strip().removeprefix("WITH ")},
    used AS (
        SELECT classid, objid FROM pg_catalog.pg_depend WHERE refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass
            AND refobjid IN (SELECT oid FROM written)
        UNION
        SELECT classid, objid FROM pg_catalog.pg_depend JOIN pg_catalog.pg_operator AS operator
            ON refclassid = 'pg_catalog.pg_operator'::pg_catalog.regclass AND refobjid = operator.oid
            AND oprcode IN (SELECT oid FROM written)
    )
    SELECT CASE relkind WHEN 'v' THEN 'a view' WHEN 'f' THEN 'a foreign table' ELSE 'no table' END
        || CASE WHEN relation.oid <> CAST(:relation AS pg_catalog.regclass) THEN ' as a part of it' ELSE '' END
    FROM relation WHERE relkind NOT IN ('r', 'p', 'm')
    UNION ALL
    SELECT 'a table with an index or a partition key that calls a function of another role' FROM relation
    WHERE EXISTS (SELECT FROM used WHERE classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND objid IN (
        SELECT relation.oid UNION ALL SELECT indexrelid FROM pg_catalog.pg_index WHERE indrelid = relation.oid))
    UNION ALL
    SELECT 'a table with statistics that call a function of another role' FROM relation
    JOIN pg_catalog.pg_statistic_ext ON stxrelid = relation.oid
    JOIN used ON classid = 'pg_catalog.pg_statistic_ext'::pg_catalog.regclass AND objid = pg_statistic_ext.oid
    UNION ALL
    SELECT 'in a database with a cast of another role' FROM pg_catalog.pg_cast WHERE castfunc IN (
        SELECT oid FROM written)
    LIMIT 1
"""  # noqa: S608
"""Selects foreign code that runs when a relation is read: the planner evaluates constants in indexes."""

HARDENING_QUERY = """
    SELECT pg_catalog.set_config(name, CASE name WHEN 'restrict_nonsystem_relation_kind' THEN 'view,foreign-table'
        ELSE 'off' END, false)
    FROM pg_catalog.pg_settings
    WHERE name IN ('restrict_nonsystem_relation_kind', 'row_security', 'constraint_exclusion')
"""
"""Forbids views and row policies on servers that can (since August 2024), and turns off an unneeded optimization."""


def harden_connection(connection: "psycopg.Connection[Any]") -> None:
    """Make a new connection safe for a privileged role, before any other statement.

    Raises:
        InputError: the role is privileged, and a name in Yarus's statements could call another role's code.
    """
    (path,) = connection.execute("SELECT pg_catalog.current_schemas(false)").fetchone() or ([],)
    connection.execute("SET LOCAL search_path = pg_catalog")
    row = connection.execute(PRIVILEGED_ROLE_QUERY).fetchone()
    if row is not None:
        connection.execute(HARDENING_QUERY)
        shadow = connection.execute(SHADOWING_QUERY, {"path": path}).fetchone()
        if shadow is not None or "pg_catalog" in path[1:]:
            objects = (
                shadow[0]
                if shadow
                else Words("schemas before pg_catalog in the search_path ({path})", path=", ".join(path))
            )
            raise _refusal(row[0], Words("statements could reach {what}, which another role has made", what=objects))
    connection.commit()


def require_safe_tables(connection: Connection, tables: Iterable[Table], source: str) -> None:
    """Check that reading the tables runs no foreign code, if the role is privileged.

    Raises:
        InputError: it would; the message names the role, the table and a safer role.
    """
    if (role := find_privileged_role(connection)) is None:
        return
    for table in tables:
        name = connection.dialect.identifier_preparer.format_table(table)
        oid = connection.scalar(text("SELECT pg_catalog.to_regclass(CAST(:name AS pg_catalog.text))"), {"name": name})
        finding = None if oid is None else connection.scalar(text(RELATION_CODE_QUERY), {"relation": oid})
        if finding is not None:
            raise _refusal(
                role, Words("{table} in source {source!r} is {what}", table=table.fullname, source=source, what=finding)
            )


def find_privileged_role(connection: Connection) -> str | None:
    """Return the role of a connection with access beyond the database, and by which right; None without one."""
    role: str | None = connection.scalar(text(PRIVILEGED_ROLE_QUERY))
    return role


def _refusal(role: str, why: str) -> InputError:
    return InputError(
        "the role is {role}, and {why}: reading it would run that code with all rights over the server. Read as a "
        "role that may only SELECT: CREATE ROLE yarus_reader LOGIN PASSWORD '…'; GRANT USAGE ON SCHEMA public TO "
        "yarus_reader; GRANT SELECT ON question_answer, chunk TO yarus_reader; and put it into the address",
        role=role,
        why=why,
    )
