"""Renderings of a :class:`~verify.diagnosis.model.Diagnosis`, and of nothing else."""
