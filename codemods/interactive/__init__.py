"""``apply -i``: a person takes and leaves changes one by one.

``dialogue`` knows what comes next, ``views`` how it looks, ``terminal`` where keys come from, ``finishing`` what is
made of the answers. Loaded only when somebody is asked.
"""
