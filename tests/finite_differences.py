"""The independent source of every gradient test: slopes measured by nudging one number at a time."""
import numpy as np
import pytest


def assert_gradients(arrays, loss, gradients, at_most=None, e=1e-5, rel=1e-5, abs=1e-7):
    """Check gradients (name -> array) against central differences of loss() in `arrays`, changed in place.

    at_most: how many numbers of each array to check, chosen at random; None checks all.
    """
    assert set(gradients) == set(arrays)
    r = np.random.default_rng(0)
    for name, array in arrays.items():
        assert gradients[name].shape == array.shape
        for i in r.choice(array.size, min(array.size, at_most or array.size), replace=False):
            place = np.unravel_index(i, array.shape)
            kept = array[place]
            array[place] = kept + e
            above = loss()
            array[place] = kept - e
            slope = (above - loss()) / (2 * e)
            array[place] = kept
            assert gradients[name][place] == pytest.approx(slope, rel=rel, abs=abs), (name, place)
