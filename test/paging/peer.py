"""Times the pager of the other program alone, in memory: no logs, no reading, no copies are counted.

    peer.py proxy|store SESSIONS.jsonl

proxy: every request brings the whole history as the client has it, faults are looked for, then it is compacted.
store: the history stays and is compacted in place, then faults are looked for.
"""

import json
import sys
import time

from pichay.pager import PageStore, compact_messages


def fresh(messages):
    """Messages whose blocks may be replaced, as a request that was just parsed has them."""
    return [{**m, "content": [dict(b) for b in m["content"]] if isinstance(m["content"], list) else m["content"]} for m in messages]


def run(mode, session):
    pages, history, spent = PageStore(), [], 0.0
    for step in session["steps"]:
        history.extend(step["append"])
        request = fresh(history) if mode == "proxy" else history
        begun = time.process_time()
        if mode == "proxy":
            pages.detect_faults(request)
        compact_messages(request, age_threshold=4, min_size=500, page_store=pages)
        if mode == "store":
            pages.detect_faults(request)
        spent += time.process_time() - begun
    return spent, pages


def main():
    mode, path = sys.argv[1:]
    out = {"seconds": 0.0, "evictions": 0, "gc": 0, "faults": 0}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            spent, pages = run(mode, json.loads(line))
            out["seconds"] += spent
            out["evictions"] += pages.unique_evictions
            out["gc"] += pages.gc_count
            out["faults"] += len(pages.faults)
    print(json.dumps(out))


main()
