"""Harms of a resource of any size, as functions of plain arguments: read its rows about targets, label and count them,
measure. Data that grows with the resource is processed in parts."""
