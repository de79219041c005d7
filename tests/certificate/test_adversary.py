"""A search for a candidate that is accepted with an error beyond its radius: none against what is proven."""

import pytest
from adversary_search import OPPONENTS, PAPER, PROVEN, arenas, attack

TRIES = 45


@pytest.mark.parametrize("name", OPPONENTS)
def test_no_accepted_candidate_has_an_error_beyond_a_radius_that_is_called_a_bound(name):
    opponent = OPPONENTS[name]
    for arena in arenas(opponent.continuous):
        found = attack(name, arena, TRIES // 2 if arena == "source, ball" else TRIES, seed=1)
        assert found.beyond_bound == 0, found.examples
        if name in PROVEN:
            assert found.beyond_estimate == 0
        if opponent.certain:
            assert found.harm == 0, found.examples


def test_the_same_search_finds_some_against_the_papers_radius():
    found = attack(PAPER, "source, line", 300, seed=1)
    assert found.beyond_estimate > 10
    assert found.worst > 2.0
    assert found.beyond_bound == 0


def test_the_search_is_strong_enough_to_reach_the_exact_radius():
    # The exact radius cannot be smaller: there is a truth at that distance.
    assert attack("ExactRadius", "source, line", 300, seed=1).worst > 0.99
