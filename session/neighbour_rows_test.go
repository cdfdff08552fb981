package session_test

// neighbourRows are what a neighbour has beside its messages; $n tells the neighbours apart where numbers have to. What is
// to be sent has numbers below those that a test counts from 1. The tables of episodes are left out: their tests damage
// all rows at once.
const neighbourRows = `
INSERT INTO heads(key, log, title, created, active, messages, context, compactions, settings, lives) VALUES
	('$key', '$name-log', 'Neighbour $name', $at, $at, 6, 6000, 3, '{"model":"neighbour-model","title":"Neighbour $name"}', 7),
	('$key#side', '$name-branch', 'Side of $name', $at, $at, 6, 6000, 0, '{"model":"side-model"}', 2);
INSERT INTO refs(name, value) VALUES('head:$key', '$name-log'), ('head:$key#side', '$name-branch');
INSERT INTO inputs(key, id, kind, state, at, origin, payload, hash, tokens, run) VALUES
	('$key', '1', 'message', 'done', $at, '{}', '{"role":"user","content":"a"}', 'h1', 10, '$name-done'),
	('$key', 'a', 'message', 'taken', $at, '{}', '{"role":"user","content":"b"}', 'h2', 10, '$name-run'),
	('$key', 'b', 'message', 'new', $at, '{}', '{"role":"user","content":"c"}', 'h3', 5000000, ''),
	('$key', 'c', 'message', 'new', $at, '{}', '{"role":"user","content":"d"}', 'h4', 5000000, ''),
	('$key#side', 'a', 'message', 'new', $at, '{}', '{"role":"user","content":"e"}', 'h5', 10, '');
INSERT INTO runs(id, key, log, owner, state, attempt, round, started, updated, reply) VALUES
	('$name-run', '$key', '$name-log', '000000000007/x', 'calling', 1, 0, $at, $at, ''),
	('$name-done', '$key', '$name-log', '000000000006/x', 'done', 1, 1, $at, $at, ''),
	('$name-failed', '$key', '$name-log', '000000000006/x', 'failed', 3, 1, $at, $at, ''),
	('$name-side', '$key#side', '$name-branch', '000000000002/x', 'tools', 1, 1, $at, $at, '');
INSERT INTO calls(run, round, n, id, call, idempotent, state) VALUES
	('$name-side', 1, 0, 'toolu_1', '{"type":"tool_use","id":"toolu_1","name":"look","input":{}}', 1, 'registered'),
	('$name-side', 1, 1, 'toolu_2', '{"type":"tool_use","id":"toolu_2","name":"send","input":{}}', 0, 'started');
INSERT INTO plans(id, key, log, state, reason, instructions, act, part_ms, last, size, chunk_size, created) VALUES
	('$name-plan', '$key', '$name-log', 'open', 'threshold', '', '{}', $at, 1, 4, 2, $at),
	('$name-plan-done', '$key', '$name-log', 'done', 'threshold', '', '{}', $at, 1, 4, 2, $at);
INSERT INTO parts(log, first, last, key, info) VALUES('$name-log', 1, 2, 'agents/main/sessions/$name-part1.jsonl.gz', '{}');
INSERT INTO resets(old, key, new, step, reason, at) VALUES
	('$name-old1', '$key', '$name-new1', 'archive', 'manual', $at),
	('$name-old2', '$key', '$name-new2', 'extract', 'manual', $at),
	('$name-old3', '$key', '$name-new3', 'move', 'manual', $at),
	('$name-old4', '$key', '$name-log', 'done', 'manual', $at);
INSERT INTO outbox(id, key, kind, payload, at) VALUES
	('$name-facts', '$key', 'facts', '{"id":"$name-facts","facts":[{"text":"a fact of $name"}]}', $at),
	('$name-archive', '$key', 'archive', '{"key":"agents/main/sessions/$name.jsonl.gz"}', $at),
	('$name-sitting', '$key', 'episode', '{"from":1,"to":2}', $at),
	('$name-question', '$key', 'question', '{"code":"AAAA","tool":"send"}', $at),
	('$name-ran', '$key', 'ran', '{"schedule":1}', $at);
INSERT INTO due(key, kind, at, data) VALUES
	('$key', 'run', 1, ''), ('$key', 'reset', 1, ''), ('$key', 'outbox', 1, ''), ('$key', 'extract:$name-old4', 1, ''), ('$key', 'evicted:01', 1, '$name-log 0'),
	('$key', 'again', 1, ''), ('$key', 'import', 1, ''), ('$key', 'spool', 1, ''), ('$key', 'out', 1, ''), ('$key', 'episode', 1, ''), ('$key', 'embed', 1, ''),
	('$key', 'digest', 1, ''), ('$key', 'words', 1, ''), ('$key', 'index', 1, '1'), ('$key#side', 'run', 1, '');
INSERT INTO anatomy(key, log, record) VALUES('$key', '$name-log', '{"context":6000}'), ('$key', '$name-log', '{"context":6001}');
INSERT INTO spool(key, id, n, bytes) VALUES('$key', 'a', 0, x'7b7d'), ('$key', '1', 0, x'7b7d');
INSERT INTO approvals(key, code, run, round, n, tool, input, state, asked, expires) VALUES
	('$key', 'AAAA', '$name-side', 1, 0, 'send', '{}', 'waiting', $at, 1),
	('$key', 'BBBB', '$name-side', 1, 1, 'send', '{}', 'waiting', $at, 9000000000000),
	('$key', 'CCCC', '$name-done', 1, 0, 'send', '{}', 'granted', $at, 1);
INSERT INTO artifacts(key, sha, size, bytes) VALUES('$key', 'sha-$name', 2, x'6f6b');
INSERT INTO unread(key, entry, at) SELECT '$key', id, 0 FROM entries WHERE log = '$name-log' LIMIT 2;
INSERT INTO pieces(n, key, seq, at, size, text) SELECT $n, '$key', min(seq), 1, 4, x'67617264' FROM entries WHERE log = '$name-log';
INSERT INTO piece_words(rowid, home, terms) VALUES($n, '$key', 'garden one two ok result');
INSERT INTO vectors(key, seq, vector) SELECT '$key', seq, x'0000803f' FROM entries WHERE log = '$name-log' LIMIT 2;
INSERT INTO embedded(key, log, model, seq, failures) VALUES('$key', '$name-log', 'neighbour-embedder', 1, 2);
INSERT INTO outbound(n, key, state, open, peer, address, text, quote, at, next, tries, owner, id) VALUES
	(-1 - 10 * $n, '$key', 'pending', 1, 'ann', 'ann', 'to be sent by $name', '', $at, 1, 0, '', ''),
	(-2 - 10 * $n, '$key', 'sending', 1, 'ann', 'ann', 'in work at $name', '', $at, 0, 1, '000000000007/x', ''),
	(-3 - 10 * $n, '$key', 'sent', 0, 'ann', 'ann', 'sent by $name', '', $at, 0, 1, '000000000006/x', 'wamid.1'),
	(-4 - 10 * $n, '$key', 'unknown', 1, 'ann', 'ann', 'perhaps sent by $name', '', $at, 0, 1, '000000000006/x', 'wamid.2');
INSERT INTO heard(key, message, said, at) VALUES('$key', 'wamid.1', 'what $name heard', $at);
INSERT INTO recalls(key, at, by, verdict, entry, evicted) VALUES('$key', $at, 'model', 'found', 'e', 1), ('$key', $at, 'model', 'missed', 'e', 1);
INSERT INTO tunings(key, tuning) VALUES('$key', '{}');
INSERT INTO unsound(key, overlay, at, act, text) VALUES('$key', 'overlay-of-$name', 9000000000000, 'summary', 'not sound'), ('$key', 'overlay-of-$name', 9000000000000, 'paging', 'not sound');
INSERT INTO episodes(key, upto) VALUES('$key', 1);
INSERT INTO skips(key, run, log, state, first, at, ids) VALUES('$key', '$name-run', '$name-log', 'open', 1, $at, '["a"]');
INSERT INTO working(key, upto, events, bytes, skipped) VALUES('$key', 1, 2, 3, 4);
INSERT INTO snapshots(id, root, log, seq, parent, created, node) VALUES('$name-snap', '$key', '$name-log', 1, '', $at, '{}');
INSERT INTO branches(log, key, snapshot, created, node) VALUES('$name-branch', '$key#side', '$name-snap', $at, '{}');
INSERT INTO merges(log, seq, target, hash, entry) VALUES('$name-branch', 1, '$name-log', 'h', 'e');
INSERT INTO tasks(key, version, card) VALUES('$key', 3, '{}');
INSERT INTO premises(key, since, premise, task) VALUES('$key', 1, 'premise of $name', 'task of $name');
INSERT INTO marks(key, id, pinned, superseded) SELECT '$key', id, 1, 'later' FROM entries WHERE log = '$name-log' LIMIT 2;
INSERT INTO toolsets(key, day, list) VALUES('$key', '1999-01-01', '[]');
`
