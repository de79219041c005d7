"""Studies: whole experiments built from the rooms before, with results that know nothing of how they are drawn."""
