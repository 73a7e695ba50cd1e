"""Checked: the tables of which the server may refuse a row by more than keys, uniques and NOT NULL."""

from __future__ import annotations

# Constraints of other kinds; row security; expressions, which may fail; texts too long for an index that was
# made since; types that are made of others, whose own checks may have changed; partitions.
CHECKED = """
    c.relkind <> 'r' OR c.relispartition OR c.relrowsecurity
    OR EXISTS (SELECT FROM pg_catalog.pg_constraint k
        WHERE k.conrelid = c.oid AND k.contype NOT IN ('p', 'u', 'f', 'n'))
    OR EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid
        AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL))
    OR EXISTS (SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indexrelid
        WHERE i.indrelid = c.oid AND NOT i.indisunique AND a.attlen < 0)
    OR EXISTS (SELECT FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
        LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            AND (a.attgenerated <> '' OR t.typtype NOT IN ('b', 'e') OR e.typtype NOT IN ('b', 'e')))
"""
"""SQL that is true of such a table `c`. What it looks at is part of a schema's shape."""
