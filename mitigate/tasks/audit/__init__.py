"""The harms of a resource of any size, as functions of plain arguments: read its rows about targets, label and count
them, measure. What grows with the resource is worked through in parts."""
