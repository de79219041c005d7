"""The paper's validation and its sweep, with their figures and pages: clients of the rooms before."""

__all__: list[str] = []
