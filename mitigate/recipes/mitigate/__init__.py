"""The main job: score, filter, train, probe, measure, report."""
