"""Roles that rule their server: what they read may run no code of somebody else.

A view, an index on an expression, a cast or a function that stands before PostgreSQL's own is run with the rights of
whoever reads. A read-only transaction stops writing by SQL, but not a superuser's COPY … TO PROGRAM. So such a role
reads tables without foreign code, and nothing else; code that belongs to a superuser or to the role itself is none.
"""

from collections.abc import Iterable
from typing import Any

import psycopg
from sqlalchemy import Connection, Table, text

from yarus.db.errors import InputError
from yarus.db.words import Words

ROLE = """
    SELECT role.rolname || CASE WHEN role.rolsuper THEN ', a superuser' ELSE ', a member of ' || string_agg(
        dangerous.rolname, ', ' ORDER BY dangerous.rolname) END
    FROM pg_catalog.pg_roles AS role LEFT JOIN pg_catalog.pg_roles AS dangerous ON dangerous.rolname IN
        ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files')
        AND pg_catalog.pg_has_role(role.oid, dangerous.oid, 'MEMBER')
    WHERE role.rolname IN (SESSION_USER, CURRENT_USER) AND (role.rolsuper OR dangerous.oid IS NOT NULL)
    GROUP BY role.rolname, role.rolsuper
"""
"""A role of this session that can reach beyond the database, and why; no row if there is none."""

FOREIGN_CODE = """
    WITH written AS (
        SELECT code.oid, code.proname AS name, code.pronamespace AS namespace
        FROM pg_catalog.pg_proc AS code JOIN pg_catalog.pg_roles AS owner ON owner.oid = code.proowner
        WHERE NOT owner.rolsuper AND owner.rolname <> SESSION_USER
    )
"""
# S608: all of it stands in this file.
SHADOWING = f"""{FOREIGN_CODE}
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
"""Foreign code that a name in a statement may reach instead of PostgreSQL's or an extension's."""

REACHED = f"""
    WITH RECURSIVE relation AS (
        SELECT oid, relname, relkind FROM pg_catalog.pg_class WHERE oid = CAST(:relation AS pg_catalog.regclass)
        UNION
        SELECT child.oid, child.relname, child.relkind FROM relation
        JOIN pg_catalog.pg_inherits ON inhparent = relation.oid
        JOIN pg_catalog.pg_class AS child ON child.oid = inhrelid
    ),
    {FOREIGN_CODE.strip().removeprefix("WITH ")},
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
"""What would run when a relation is read: the planner evaluates what is constant in an index."""

SETTINGS = """
    SELECT pg_catalog.set_config(name, CASE name WHEN 'restrict_nonsystem_relation_kind' THEN 'view,foreign-table'
        ELSE 'off' END, false)
    FROM pg_catalog.pg_settings
    WHERE name IN ('restrict_nonsystem_relation_kind', 'row_security', 'constraint_exclusion')
"""
"""What the server itself can refuse: views (since August 2024), policies of rows; and what no plan needs."""


def guard(connection: "psycopg.Connection[Any]") -> None:
    """Makes a new connection safe for a role that rules its server, before anything else is asked.

    Raises:
        InputError: the role is one, and a name in our statements could reach another role's code.
    """
    (path,) = connection.execute("SELECT pg_catalog.current_schemas(false)").fetchone() or ([],)
    connection.execute("SET LOCAL search_path = pg_catalog")
    found = connection.execute(ROLE).fetchone()
    if found is not None:
        connection.execute(SETTINGS)
        shadow = connection.execute(SHADOWING, {"path": path}).fetchone()
        if shadow is not None or "pg_catalog" in path[1:]:
            what = (
                shadow[0]
                if shadow
                else Words("schemas before pg_catalog in the search_path ({path})", path=", ".join(path))
            )
            raise _refusal(found[0], Words("statements could reach {what}, which another role has made", what=what))
    connection.commit()


def check(connection: Connection, tables: Iterable[Table], source: str) -> None:
    """That reading the tables runs no code of others, where the role rules its server.

    Raises:
        InputError: it would; the role, the table and a safer role are named.
    """
    if (role := privilege(connection)) is None:
        return
    for table in tables:
        name = connection.dialect.identifier_preparer.format_table(table)
        there = connection.scalar(text("SELECT pg_catalog.to_regclass(CAST(:name AS pg_catalog.text))"), {"name": name})
        reached = None if there is None else connection.scalar(text(REACHED), {"relation": there})
        if reached is not None:
            raise _refusal(
                role, Words("{table} in source {source!r} is {what}", table=table.fullname, source=source, what=reached)
            )


def privilege(connection: Connection) -> str | None:
    """The role of a connection that can reach beyond the database, and by what; None if it cannot."""
    found: str | None = connection.scalar(text(ROLE))
    return found


def _refusal(role: str, why: str) -> InputError:
    return InputError(
        "the role is {role}, and {why}: reading it would run that code with all rights over the server. Read as a "
        "role that may only SELECT: CREATE ROLE yarus_reader LOGIN PASSWORD '…'; GRANT USAGE ON SCHEMA public TO "
        "yarus_reader; GRANT SELECT ON question_answer, chunk TO yarus_reader; and put it into the address",
        role=role,
        why=why,
    )
