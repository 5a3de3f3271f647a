"""The real committer, writer and cleaner on a virtual clock and a faulty store, from one seed.

`world` holds everything that one seed makes, `scenario` tells its story, `model` judges every effect.
"""
