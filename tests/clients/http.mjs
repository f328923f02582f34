// http - the HTTP API, spoken to by the published SDK and by raw sockets. usage: node http.mjs TEST
//
// Each test starts a server of its own on a free port. AGENTKERNEL is the program.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import net from 'node:net';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const program = process.env.AGENTKERNEL;
const modules = createRequire(path.join(process.env.BUILD, 'clients', 'package.json'));
const load = (name) => import(pathToFileURL(modules.resolve(name)));
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
// a build with sanitizers, which keep what was freed and take their time: neither is measured then
const sanitized = Boolean(process.env.REPORTS);

async function freePort() {
	const s = net.createServer();
	await new Promise((done) => s.listen(0, '127.0.0.1', done));
	const { port } = s.address();
	await new Promise((done) => s.close(done));
	return port;
}

// How many tools /mcp has.
const TOOLS = 28;

const servers = [];
process.on('exit', () => servers.forEach((child) => child.kill('SIGKILL')));

async function serve(...more) {
	const port = await freePort();
	const child = spawn(program, ['serve', '--image', 'host', '--listen', `127.0.0.1:${port}`, ...more], { stdio: ['ignore', 'ignore', 'pipe'] });
	servers.push(child);
	const server = { port, url: `http://127.0.0.1:${port}`, pid: child.pid, child, words: '' };
	child.stderr.on('data', (text) => { server.words += text; });
	server.closed = new Promise((done) => child.on('exit', (code) => done(code)));
	server.end = () => { child.kill('SIGTERM'); return server.closed; };
	for (let i = 0; i < 200; i++) {
		try { await fetch(`${server.url}/health`); return server; } catch { await wait(25); }
		if (child.exitCode !== null) throw new Error(server.words);
	}
	throw new Error('the server does not answer');
}

const post = (s, where, body, headers = {}) => fetch(s.url + where, { method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', ...headers } });

// Bytes as they are, and what comes back until the connection ends or stays silent.
function raw(port, bytes, { silence = 1500, hold = false } = {}) {
	return new Promise((done) => {
		const s = net.connect(port, '127.0.0.1');
		let got = '';
		s.setTimeout(silence, () => { s.destroy(); done({ got, ended: false }); });
		s.on('data', (d) => { got += d; });
		s.on('error', () => {});
		s.on('close', () => done({ got, ended: true }));
		if (!hold) s.write(bytes);
	});
}
const status = (text) => Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);

const tests = {
	async 'the published SDK works unchanged, every method of it'() {
		const s = await serve();
		const { AgentKernel } = await load('agentkernel');
		const c = new AgentKernel({ baseUrl: s.url });
		assert.equal(await c.health(), 'ok');
		assert.equal((await c.run(['echo', 'hi'])).output, 'hi\n');
		await assert.rejects(c.run(['sh', '-c', 'echo why; exit 3']), /exited with code 3: why/);
		const events = [];
		for await (const event of c.runStream(['sh', '-c', 'echo 1; sleep 0.2; echo 2'])) events.push(event);
		assert.deepEqual(events.map((e) => e.type), ['started', 'output', 'output', 'done']);
		assert.equal(events[1].data.data, '1\n');
		const made = await c.createSandbox('one', { memory_mb: 256 });
		assert.deepEqual([made.name, made.status], ['one', 'running']);
		assert.equal((await c.getSandbox('one')).uuid, made.uuid);
		assert.equal((await c.getSandboxByUuid(made.uuid)).name, 'one');
		assert.deepEqual((await c.listSandboxes()).map((b) => b.name), ['one']);
		assert.equal((await c.execInSandbox('one', ['sh', '-c', 'echo $X; pwd'], { env: ['X=y'], workdir: '/tmp' })).output, 'y\n/tmp\n');
		assert.match(await c.writeFile('one', '/tmp/a b ü', 'text'), /Wrote 4 bytes/);
		assert.deepEqual([(await c.readFile('one', '/tmp/a b ü')).content], ['text']);
		await c.writeFile('one', '/tmp/bin', Buffer.from([0, 255]).toString('base64'), { encoding: 'base64' });
		assert.deepEqual([(await c.readFile('one', '/tmp/bin')).encoding, (await c.readFile('one', '/tmp/bin')).content], ['base64', 'AP8=']);
		assert.deepEqual(await c.writeFiles('one', { '/tmp/1': 'one', 'tmp/2': 'two' }), { written: 2 });
		await c.deleteFile('one', '/tmp/1');
		await assert.rejects(c.readFile('one', '/tmp/1'));
		assert.ok((await c.getSandboxLogs('one')).length > 0);
		const { results } = await c.batchRun([{ command: ['echo', 'a'] }, { command: ['false'] }]);
		assert.deepEqual([results[0].output, results[0].error, results[1].error !== null], ['a\n', null, true]);
		const d = await c.execDetached('one', ['sh', '-c', 'echo out; echo err >&2; sleep 100']);
		for (let i = 0; i < 100 && !(await c.detachedLogs('one', d.id)).stdout; i++) await wait(20);
		assert.equal((await c.detachedStatus('one', d.id)).status, 'running');
		assert.deepEqual([(await c.detachedLogs('one', d.id)).stdout, (await c.detachedLogs('one', d.id, 'stderr')).stderr], ['out\n', 'err\n']);
		assert.equal((await c.detachedList('one')).length, 1);
		await c.detachedKill('one', d.id);
		assert.ok(Date.parse((await c.extendTtl('one', { by: '30m' })).expires_at) > Date.now());
		assert.equal((await c.takeSnapshot({ sandbox: 'one', name: 'snap' })).name, 'snap');
		assert.deepEqual((await c.listSnapshots()).map((n) => n.name), ['snap']);
		assert.equal((await c.getSnapshot('snap')).sandbox, 'one');
		await c.execInSandbox('one', ['rm', '/tmp/2']);
		assert.equal((await c.restoreSnapshot('snap')).name, 'one');
		assert.equal((await c.readFile('one', '/tmp/2')).content, 'two');
		await c.deleteSnapshot('snap');
		await c.removeSandbox('one');
		await assert.rejects(c.getSandbox('one'), { name: 'NotFoundError' });
		const session = await c.sandbox('two');
		assert.equal((await session.run(['echo', 'session'])).output, 'session\n');
		await session.remove();
		assert.equal(await s.end(), 0);
	},

	async 'keys are asked for, and everyone else is told how'() {
		writeFileSync('keys', 'first-key\nsecond-key\n');
		const s = await serve('--api-key-file', 'keys');
		const ask = async (headers) => { const r = await fetch(`${s.url}/sandboxes`, { headers }); return [r.status, (await r.json()).error]; };
		assert.deepEqual(await ask({}), [401, 'Missing Authorization header']);
		assert.deepEqual(await ask({ Authorization: 'Basic x' }), [401, 'Invalid authorization format. Use: Bearer <api_key>']);
		assert.deepEqual(await ask({ Authorization: 'Bearer second-kez' }), [401, 'Invalid API key']);
		assert.deepEqual(await ask({ Authorization: 'Bearer second-key' }), [200, undefined]);
		assert.equal((await fetch(`${s.url}/health`)).status, 200);
		const inside = await (await post(s, '/run', { command: 'env' }, { Authorization: 'Bearer first-key' })).json();
		assert.ok(!inside.data.output.includes('-key'));
		await s.end();
	},

	async 'a key sees, uses and is told of what it made itself, an admin of all, also after a restart'() {
		writeFileSync('keys', 'alice key-of-alice\nbare-key\nops key-of-ops admin\nalice second-key-of-alice\n');
		const who = { alice: 'key-of-alice', again: 'second-key-of-alice', bare: 'bare-key', ops: 'key-of-ops' };
		const as = (s, key) => async (method, where, body, headers = {}) => {
			const r = await fetch(s.url + where, { method, body: body && JSON.stringify(body), headers: { Authorization: `Bearer ${who[key]}`, ...(body ? { 'Content-Type': 'application/json' } : {}), ...headers } });
			const text = await r.text();
			try { return { status: r.status, ...JSON.parse(text) }; } catch { return { status: r.status, text }; }
		};
		const tool = async (ask, name, args) => (await ask('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } })).result;
		const names = async (ask) => (await ask('GET', '/sandboxes')).data.map((b) => b.name).sort();
		let s = await serve('--api-key-file', 'keys');
		let [alice, again, bare, ops] = ['alice', 'again', 'bare', 'ops'].map((key) => as(s, key));
		const box = (await alice('POST', '/sandboxes', { name: 'box' })).data;
		assert.equal((await alice('PUT', '/sandboxes/box/files/tmp/f', { content: 'hers' })).status, 200);
		const task = (await alice('POST', '/sandboxes/box/exec/detach', { command: ['sleep', '100'] })).data.id;
		const snap = (await alice('POST', '/snapshots', { sandbox: 'box', name: 'snap' })).data.image_tag;
		assert.equal((await tool(alice, 'sandbox_fork', { name: 'box', new_name: 'twin' })).isError ?? false, false);
		assert.equal((await bare('POST', '/sandboxes', { name: 'other' })).status, 201);

		const check = async () => {
			assert.deepEqual(await names(alice), ['box', 'twin']);
			assert.deepEqual(await names(again), ['box', 'twin'], 'two keys of one name are one owner');
			assert.deepEqual(await names(bare), ['other']);
			assert.deepEqual(await names(ops), ['box', 'other', 'twin']);
			assert.equal((await again('GET', '/sandboxes/box/files/tmp/f')).data.content, 'hers');
			assert.equal((await ops('POST', '/sandboxes/box/exec', { command: ['cat', '/tmp/f'] })).data.output, 'hers');
			assert.deepEqual((await ops('GET', '/snapshots')).data.map((n) => n.name), ['snap']);
			assert.deepEqual((await bare('GET', '/snapshots')).data, []);
			// nothing of hers is there for another, and the words are those for what is not there at all
			const requests = (name, uuid, task, word, id) => [['GET', `/sandboxes/${name}`], ['GET', `/sandboxes/by-uuid/${uuid}`], ['POST', `/sandboxes/${name}/exec`, { command: ['true'] }],
				['POST', `/sandboxes/${name}/start`], ['POST', `/sandboxes/${name}/stop`], ['POST', `/sandboxes/${name}/extend`, { by: '1h' }], ['GET', `/sandboxes/${name}/logs`],
				['GET', `/sandboxes/${name}/files/tmp/f`], ['PUT', `/sandboxes/${name}/files/tmp/f`, { content: 'x' }], ['DELETE', `/sandboxes/${name}/files/tmp/f`], ['POST', `/sandboxes/${name}/files`, { files: { '/tmp/f': 'x' } }],
				['POST', `/sandboxes/${name}/exec/detach`, { command: ['true'] }], ['GET', `/sandboxes/${name}/exec/detached`], ['GET', `/sandboxes/${name}/exec/detached/${task}`],
				['GET', `/sandboxes/${name}/exec/detached/${task}/logs`], ['DELETE', `/sandboxes/${name}/exec/detached/${task}`], ['POST', '/snapshots', { sandbox: name }],
				['POST', `/sandboxes/${name}/pause`], ['POST', `/sandboxes/${name}/resume`], ['POST', `/sandboxes/${name}/fork`, { new_name: 'stolen' }], ['GET', `/sandboxes/${name}/stats`],
				['GET', `/sandboxes/${name}/network`], ['POST', `/sandboxes/${name}/network`, { block: ['x.test'] }], ['GET', `/sandboxes/${name}/network/check?host=x.test`], ['GET', `/sandboxes/${name}/files`],
				['POST', `/sandboxes/${name}/edit`, { path: '/tmp/f', old_text: 'hers', new_text: 'x' }], ['GET', `/sandboxes/${name}/archive?path=/tmp`], ['PUT', `/sandboxes/${name}/archive?path=/tmp`, { tar: '' }],
				['GET', `/sandboxes/${name}/exec/detached/${task}/wait?timeout_ms=1`], ['GET', `/snapshots/${word}`], ['DELETE', `/snapshots/${word}`], ['DELETE', `/snapshots/${id}`], ['POST', `/snapshots/${word}/restore`], ['POST', `/snapshots/${id}/restore`]];
			const absent = requests('absent', '0'.repeat(32), '00000001', 'none', '0'.repeat(12));
			for (const [i, [method, where, body]] of requests('box', box.uuid, task, 'snap', snap).entries()) {
				const told = await bare(method, where, body);
				assert.equal(told.status, 404, `${method} ${where}: ${JSON.stringify(told)}`);
				const words = (t) => t.error.replace(/'[^']*'/, '');
				assert.equal(words(told), words(await bare(...absent[i])), `${method} ${where}`);
			}
			for (const [name, args] of [['sandbox_exec', { name: 'box', command: ['true'] }], ['sandbox_file_read', { name: 'box', path: '/tmp/f' }], ['sandbox_fork', { name: 'box', new_name: 'stolen' }],
				['sandbox_checkpoint', { name: 'box' }], ['sandbox_network_log', { name: 'box' }], ['sandbox_exec_output', { name: 'box', id: task }],
				['sandbox_exec_wait', { name: 'box', id: task }], ['sandbox_exec_list', { name: 'box' }], ['sandbox_file_edit', { name: 'box', path: '/tmp/f', old_text: 'hers', new_text: 'x' }], ['sandbox_download', { name: 'box', path: '/tmp' }],
				['sandbox_upload', { name: 'box', path: '/tmp', tar: '' }], ['sandbox_file_remove', { name: 'box', path: '/tmp/f' }], ['sandbox_pause', { name: 'box' }], ['sandbox_resume', { name: 'box' }]])
				assert.match(JSON.stringify(await tool(bare, name, args)), /no sandbox named 'box'/, name);
			assert.match(JSON.stringify(await tool(bare, 'sandbox_restore', { name: 'other', id: snap })), /no checkpoint/);
			assert.deepEqual((await tool(bare, 'sandbox_list', {})).structuredContent.sandboxes.map((b) => b.name), ['other']);
			assert.deepEqual((await tool(bare, 'checkpoint_list', { name: 'box' })).structuredContent.entries, []);
			assert.match(JSON.stringify(await tool(bare, 'checkpoint_remove', { id: snap })), /no checkpoint/);
			// an output that was cut is for the owner whose command printed it
			const { output_id } = (await tool(alice, 'sandbox_run', { command: 'seq 1 20000' })).structuredContent;
			assert.equal((await tool(again, 'sandbox_exec_output', { id: output_id, tail_lines: 1 })).structuredContent.output, '20000\n');
			assert.equal((await tool(bare, 'sandbox_exec_output', { id: output_id })).isError, true);
			const taken = await bare('POST', '/sandboxes', { name: 'box' });
			assert.deepEqual([taken.status, taken.error], [409, "the name 'box' is taken"]);
			assert.equal((await bare('DELETE', '/sandboxes/box')).status, 200, 'one that is not there is fine');
			assert.equal((await alice('GET', `/sandboxes/box/exec/detached/${task}`)).data.status, 'running', 'and it was not touched');
		};
		await check();
		const session = async (ask) => (await fetch(`${s.url}/mcp`, { method: 'POST', body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18' } }), headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${ask}` } })).headers.get('mcp-session-id');
		const hers = await session(who.alice);
		assert.equal((await bare('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }, { 'Mcp-Session-Id': hers })).status, 404);
		assert.equal((await bare('DELETE', '/mcp', undefined, { 'Mcp-Session-Id': hers })).status, 404);
		assert.equal((await again('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }, { 'Mcp-Session-Id': hers })).status, 200);
		await s.end();

		const where = path.join(process.cwd(), 's.sock');
		s = await serve('--api-key-file', 'keys', '--listen', `unix:${where}`);
		[alice, again, bare, ops] = ['alice', 'again', 'bare', 'ops'].map((key) => as(s, key));
		await check();
		const local = (headers) => new Promise((done) => http.get({ socketPath: where, path: '/sandboxes', headers: { Host: 'localhost', ...headers } }, (r) => { let t = ''; r.on('data', (d) => { t += d; }); r.on('end', () => done([r.statusCode, JSON.parse(t).data?.map((b) => b.name)])); }));
		assert.deepEqual(await local({}), [200, ['box', 'other', 'twin']], 'the user needs no key and sees all');
		assert.deepEqual(await local({ Authorization: 'Bearer bare-key' }), [200, ['other']], 'a key that is given counts');
		assert.equal((await local({ Authorization: 'Bearer wrong' }))[0], 401);
		await s.end();

		s = await serve('--api-key-file', 'keys', '--no-isolate-keys');
		assert.deepEqual(await names(as(s, 'bare')), ['box', 'other', 'twin']);
		await s.end();
		writeFileSync('keys', 'bare-key\n');
		s = await serve('--api-key-file', 'keys');
		assert.deepEqual(await names(as(s, 'bare')), ['box', 'other', 'twin'], 'one key alone is the user');
		await s.end();
		s = await serve('--api-key-file', 'keys', '--isolate-keys');
		assert.deepEqual(await names(as(s, 'bare')), ['other']);
		await s.end();
		for (const text of ['alice a b\n', 'Alice key\n', 'a same\nb same\n', ' \n\n', Array.from({ length: 65 }, (_, i) => `key${i}`).join('\n')]) {
			writeFileSync('keys', text);
			const refused = spawnSync(program, ['serve', '--listen', `127.0.0.1:${s.port}`, '--api-key-file', 'keys'], { encoding: 'utf8', timeout: 5000 });
			assert.deepEqual([refused.status, /key/.test(refused.stderr)], [125, true], text);
		}
		const nothing = spawnSync(program, ['serve', '--listen', `127.0.0.1:${s.port}`, '--isolate-keys'], { encoding: 'utf8', timeout: 5000 });
		assert.deepEqual([nothing.status, /no keys/.test(nothing.stderr)], [125, true]);
		const cli = (...words) => spawnSync(program, words, { encoding: 'utf8' });
		assert.equal(JSON.parse(cli('info', '--json', 'twin').stdout).owner, 'name:alice', 'a fork has the owner of its original');
		cli('checkpoint', 'remove', snap);
		for (const name of ['box', 'twin', 'other']) assert.equal(cli('remove', '-f', name).status, 0);
	},

	async 'the sandbox of a run with files is the call\'s alone, and gone with it or with its client'() {
		writeFileSync('keys', 'alice key-of-alice\nops key-of-ops admin\n');
		const s = await serve('--api-key-file', 'keys');
		const boxes = () => { try { return readdirSync(path.join(process.env.AGENTKERNEL_HOME, 'sandboxes')).filter((n) => !n.startsWith('.')); } catch { return []; } };
		const until = async (wanted) => { for (let i = 0; i < 400 && boxes().length !== wanted; i++) await wait(25); assert.equal(boxes().length, wanted); return boxes()[0]; };
		const key = (k) => ({ Authorization: `Bearer ${k}` });
		for (const disconnects of [false, true]) {
			const stop = new AbortController();
			const asked = fetch(`${s.url}/run`, { method: 'POST', body: JSON.stringify({ command: 'cat /tmp/f; sleep 2; cat /tmp/f', files: { '/tmp/f': 'kept' } }), headers: { 'Content-Type': 'application/json', ...key('key-of-alice') }, signal: stop.signal }).then((r) => r.json());
			const settled = asked.catch(() => {});
			const name = await until(1);
			for (const k of ['key-of-alice', 'key-of-ops']) {
				assert.deepEqual((await (await fetch(`${s.url}/sandboxes`, { headers: key(k) })).json()).data, [], k);
				assert.equal((await fetch(`${s.url}/sandboxes/${name}`, { headers: key(k) })).status, 404);
				assert.equal((await post(s, `/sandboxes/${name}/exec`, { command: 'echo changed >/tmp/f' }, key(k))).status, 404);
				assert.equal((await fetch(`${s.url}/sandboxes/${name}`, { method: 'DELETE', headers: key(k) })).status, 200, 'as for one that is not there');
				assert.match(await (await post(s, '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'sandbox_exec', arguments: { name, command: ['true'] } } }, key(k))).text(), /no sandbox/);
			}
			assert.deepEqual(boxes(), [name]);
			assert.equal(JSON.parse(spawnSync(program, ['info', '--json', name], { encoding: 'utf8' }).stdout).owner.slice(0, 5), 'call:', 'the user at the command line sees it');
			if (disconnects) stop.abort();
			else assert.equal((await asked).data.stdout, 'keptkept');
			await settled;
			await until(0);
		}
		await s.end();
	},

	async 'events and logs tell each caller the same: what is about a sandbox that it may use'() {
		writeFileSync('keys', 'alice key-of-alice\nbob key-of-bob\nops key-of-ops admin\n');
		const cli = (...words) => spawnSync(program, words, { encoding: 'utf8' });
		const key = (k) => ({ Authorization: `Bearer key-of-${k}` });
		const until = async (what) => { for (let i = 0; i < 200 && !what(); i++) await wait(25); };
		const listen = async (s, k, headers = {}) => {
			const l = { told: '' };
			const r = await fetch(`${s.url}/events`, { headers: { ...key(k), ...headers } });
			assert.equal(r.status, 200);
			l.reader = r.body.getReader();
			(async () => { for (;;) { const { value, done } = await l.reader.read(); if (done) return; l.told += new TextDecoder().decode(value); } })().catch(() => {});
			await until(() => l.told.includes('begun'));
			l.events = () => [...l.told.matchAll(/^data: (.*)$/gm)].map((m) => JSON.parse(m[1]));
			l.names = () => [...new Set(l.events().map((e) => e.sandbox))].sort();
			return l;
		};
		// one that may do more than the server's callers, and one of the same name before that
		cli('create', '--image', 'host', '--profile', 'permissive', 'reused');
		cli('start', 'reused');
		cli('exec', 'reused', 'echo', 'secret-of-the-old');
		cli('remove', '-f', 'reused');
		cli('create', '--image', 'host', '--profile', 'permissive', 'loose');
		const s = await serve('--api-key-file', 'keys', '--profile', 'restrictive');
		const heard = {};
		for (const k of ['alice', 'bob', 'ops']) heard[k] = await listen(s, k);
		assert.equal((await post(s, '/sandboxes', { name: 'hers' }, key('alice'))).status, 201);
		assert.equal((await post(s, '/sandboxes', { name: 'his' }, key('bob'))).status, 201);
		assert.equal((await post(s, '/sandboxes', { name: 'reused' }, key('ops'))).status, 201);
		await post(s, '/sandboxes/hers/exec', { command: ['echo', 'secret-of-alice'] }, key('alice'));
		assert.equal((await post(s, '/sandboxes/hers/exec', { command: ['echo', 'attempt-of-bob'] }, key('bob'))).status, 404);
		cli('start', 'loose');
		cli('exec', 'loose', 'echo', 'secret-of-the-user');
		await post(s, '/run', { command: ['true'], files: { '/tmp/x': '' } }, key('alice'));
		await post(s, '/sandboxes/his/exec', { command: ['echo', 'the-last'] }, key('bob'));
		await until(() => heard.ops.told.includes('the-last') && heard.bob.told.includes('the-last') && heard.alice.told.includes('secret-of-alice'));
		await wait(500);
		assert.deepEqual(heard.alice.names(), ['hers']);
		assert.deepEqual([...new Set(heard.alice.events().map((e) => e.owner))], ['name:alice']);
		assert.ok(heard.alice.told.includes('secret-of-alice') && !heard.alice.told.includes('attempt-of-bob'));
		assert.ok(heard.bob.names().includes('his') && !heard.bob.told.includes('secret-of-alice'));
		assert.deepEqual(heard.ops.names(), ['hers', 'his', 'reused']);
		assert.ok(!heard.ops.told.includes('secret-of-the-user'));
		// all that is in the log, from its beginning
		for (const k of ['alice', 'bob', 'ops']) {
			const all = await listen(s, k, { 'Last-Event-ID': '0' });
			await until(() => all.told.includes(k === 'alice' ? 'secret-of-alice' : 'the-last'));
			await wait(300);
			assert.ok(!/secret-of-the-(user|old)/.test(all.told), k);
			assert.equal(all.told.includes('secret-of-alice'), k !== 'bob');
			await all.reader.cancel();
		}
		assert.equal((await fetch(`${s.url}/events`, { headers: { ...key('ops'), 'Last-Event-ID': '-1' } })).status, 400);
		const logs = async (name, k) => { const r = await fetch(`${s.url}/sandboxes/${name}/logs`, { headers: key(k) }); return [r.status, await r.text()]; };
		assert.equal((await logs('loose', 'ops'))[0], 403);
		assert.equal((await logs('hers', 'bob'))[0], 404);
		const [status, told] = await logs('reused', 'ops');
		assert.deepEqual([status, told.includes('"create"'), told.includes('secret-of-the-old')], [200, true, false], 'of the one that is there now');
		// that it is gone is told, too
		await fetch(`${s.url}/sandboxes/hers`, { method: 'DELETE', headers: key('alice') });
		await until(() => heard.alice.told.includes('"remove"') && heard.ops.told.includes('"remove"'));
		assert.ok(heard.alice.events().some((e) => e.type === 'remove' && e.sandbox === 'hers'));
		assert.ok(heard.ops.events().some((e) => e.type === 'remove' && e.sandbox === 'hers'));
		for (const k of ['alice', 'bob', 'ops']) await heard[k].reader.cancel();
		await s.end();
		for (const name of ['his', 'reused', 'loose']) cli('remove', '-f', name);
	},

	async 'a page of another origin gets nothing, nor does another name for this machine'() {
		const local = path.join(process.cwd(), 's.sock');
		const s = await serve('--listen', `unix:${local}`);
		const own = [`http://localhost:${s.port}`, `http://127.0.0.1:${s.port}`, `http://[::1]:${s.port}`, `HTTP://LOCALHOST:${s.port}`];
		const foreign = ['http://evil.example', 'null', '', 'http://localhost.evil.example', 'http://localhost:3000', 'http://localhost', `https://localhost:${s.port}`, `http://localhost:${s.port}.evil.example`,
			`http://localhost:${s.port}@evil.example`, `http://evil.example/http://localhost:${s.port}`, `http://localhost:${s.port}/`, `http://user@localhost:${s.port}`, `http://localhost:0${s.port}`, `localhost:${s.port}`, `http://127.0.0.2:${s.port}`];
		const ask = (more, { socket, host = 'localhost', where = '/run', method = 'POST', body = '{"command":["echo","ran"]}', type = 'application/json' } = {}) => new Promise((done, fail) => {
			const c = socket ? net.connect(socket) : net.connect(s.port, '127.0.0.1');
			let got = '';
			c.on('data', (d) => { got += d; }).on('error', fail).on('close', () => done([status(got), got.includes('ran\\n')]));
			c.write(`${method} ${where} HTTP/1.1\r\n${host === null ? '' : `Host: ${host}\r\n`}${type ? `Content-Type: ${type}\r\n` : ''}Content-Length: ${body.length}\r\n${more}Connection: close\r\n\r\n${body}`);
		});
		for (const origin of foreign) assert.deepEqual(await ask(`Origin: ${origin}\r\n`), [403, false], origin);
		for (const origin of own) assert.deepEqual(await ask(`Origin: ${origin}\r\n`), [200, true], origin);
		for (const site of ['cross-site', 'same-site', 'nonsense']) assert.deepEqual(await ask(`Sec-Fetch-Site: ${site}\r\n`), [403, false], site);
		for (const site of ['same-origin', 'none']) assert.deepEqual(await ask(`Sec-Fetch-Site: ${site}\r\n`), [200, true], site);
		for (const host of ['evil.example', `evil.example:${s.port}`, '127.0.0.1.evil.example', 'localhost.evil.example', 'localhost:1@evil.com', `localhost:${s.port}@evil.com`, 'localhost:1', `localhost:${s.port}x`, 'localhost:', 'localhost/', '[::1', '[::1]x', '::1', '[localhost]', '127.1', '', '127.0.0.2'])
			assert.deepEqual(await ask('', { host }), [403, false], host);
		for (const host of ['localhost', `localhost:${s.port}`, `LocalHost:${s.port}`, `127.0.0.1:${s.port}`, `[::1]:${s.port}`]) assert.deepEqual(await ask('', { host }), [200, true], host);
		// the socket is no origin, and has no name but those that programs make up for it
		for (const origin of [...foreign, ...own]) assert.deepEqual(await ask(`Origin: ${origin}\r\n`, { socket: local }), [403, false], origin);
		for (const host of ['evil.example', 'localhost:1@evil.com', 'localhost.evil.example', 'unix.evil.example', '']) assert.deepEqual(await ask('', { socket: local, host }), [403, false], host);
		for (const host of ['localhost', 'localhost:18888', '127.0.0.1:1', 'unix', 'agentkernel']) assert.deepEqual(await ask('', { socket: local, host }), [200, true], host);
		// what a page can send without being asked for
		for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain; x=application/json', 'application/jsonx', 'application/json, text/plain', 'application/json; charset=utf-16', ''])
			for (const where of ['/run', '/run/stream', '/batch/run', '/sandboxes', '/sandboxes/x/start', '/sandboxes/x/files', '/mcp', '/snapshots'])
				assert.deepEqual(await ask('', { where, type }), [415, false], `${where} ${type}`);
		assert.deepEqual(await ask('', { where: '/sandboxes/x/files/f', method: 'PUT', type: 'text/plain' }), [415, false]);
		assert.deepEqual(await ask('', { where: '/sandboxes/x', method: 'DELETE', type: 'text/plain' }), [415, false]);
		for (const type of ['application/json', 'Application/JSON', 'application/json;charset=UTF-8', 'application/json; charset="utf-8"']) assert.deepEqual(await ask('', { type }), [200, true], type);
		assert.equal(JSON.parse(spawnSync('curl', ['-sS', '--unix-socket', local, '-H', 'Content-Type: application/json', '-d', '{"command":["echo","ran"]}', 'http://localhost/run'], { encoding: 'utf8' }).stdout).data.output, 'ran\n');
		await s.end();
	},

	async 'what could be read in two ways is refused, and the connection closed'() {
		const s = await serve();
		const cases = [
			['GET /health HTTP/1.1\r\n\r\n', 400],
			['GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n', 400],
			['GET /health HTTP/1.1\nHost: localhost\n\n', 400],
			['GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n', 400],
			['GET /health HTTP/1.1\r\nHost: localhost\r\n folded\r\n\r\n', 400],
			['POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n', 400],
			['POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n', 400],
			['POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Length: +5\r\n\r\n', 400],
			['POST /run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, identity\r\n\r\n', 501],
			['POST /run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n', 411],
			['GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n', 505],
			['GET /%00 HTTP/1.1\r\nHost: localhost\r\n\r\n', 400],
			['GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n', 400],
			[`GET /${'a'.repeat(9000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`, 414],
			[`GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${'a'.repeat(40000)}\r\n\r\n`, 431],
			['POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n', 413],
			['GET /health HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nOrigin: http://evil.example\r\n\r\n', 400],
			['GET /health HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n', 400],
			['POST /run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n', 400],
		];
		for (const [bytes, expected] of cases) {
			const r = await raw(s.port, bytes);
			assert.equal(status(r.got), expected, JSON.stringify(bytes.slice(0, 100)));
			assert.ok(r.ended, bytes.slice(0, 60));
		}
		const two = await raw(s.port, 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /nope HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
		assert.deepEqual(two.got.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 404']);
		await s.end();
	},

	async 'mistakes are told with the right status'() {
		const s = await serve();
		const code = async (method, where, body) => (await fetch(s.url + where, { method, body, headers: body ? { 'Content-Type': 'application/json' } : {} })).status;
		assert.equal(await code('GET', '/nope'), 404);
		assert.equal(await code('DELETE', '/run'), 405);
		assert.equal((await fetch(`${s.url}/run`)).headers.get('allow'), 'POST');
		const bad = await fetch(`${s.url}/run`, { method: 'POST', body: '{"a":\n x', headers: { 'Content-Type': 'application/json; charset=utf-8' } });
		assert.deepEqual([bad.status, /line 2, column/.test((await bad.json()).error)], [400, true]);
		assert.equal(await code('POST', '/run', '{}'), 400);
		assert.equal(await code('POST', '/run', '{"command":[]}'), 400);
		assert.equal(await code('POST', '/run', '{"command":["a\\u0000b"]}'), 400);
		assert.equal(await code('POST', '/sandboxes', '{"name":"../x"}'), 400);
		assert.equal(await code('GET', '/sandboxes/absent'), 404);
		assert.equal(await code('POST', '/sandboxes/absent/exec', '{"command":["true"]}'), 404);
		assert.equal(await code('POST', '/run', '{"command":["true"],"memory":"500GiB"}'), 403);
		assert.equal(await code('POST', '/sandboxes', '{"name":"x","volumes":["/:/host"]}'), 422);
		assert.equal(await code('POST', '/sandboxes', '{"name":"x"}'), 201);
		assert.equal(await code('POST', '/sandboxes', '{"name":"x"}'), 409);
		assert.equal(await code('GET', '/sandboxes/x/files/etc/../../../etc/shadow'), 404);
		assert.equal(await code('DELETE', '/sandboxes/x'), 200);
		await s.end();
	},

	async 'a member that nobody knows is refused and named, and the SDK\'s own words are known'() {
		const s = await serve();
		const said = async (where, body, method = 'POST') => {
			const r = await fetch(s.url + where, { method, body: JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });
			const text = await r.text();
			return [r.status, text];
		};
		assert.equal((await said('/sandboxes', { name: 'box' }))[0], 201);
		for (const [where, body, named, method] of [['/run', { command: ['true'], timeot_ms: 5 }, 'timeot_ms'], ['/run', { command: ['true'], usre: 'root' }, 'usre'], ['/run', { command: ['true'], volumes: ['/:/x'] }, 'volumes'],
			['/sandboxes', { name: 'x', lables: {} }, 'lables'], ['/sandboxes', { name: 'x', usre: 'root' }, 'usre'], ['/sandboxes/box/exec', { command: ['true'], timeot_ms: 5 }, 'timeot_ms'], ['/sandboxes/box/exec', { command: ['true'], image: 'x' }, 'image'],
			['/sandboxes/box/exec', { command: ['true'], name: 'other' }, 'name'], ['/sandboxes/box/exec/detach', { command: ['true'], stdin: 'x' }, 'stdin'], ['/sandboxes/box/extend', { by: '1h', to: 'x' }, 'to'],
			['/sandboxes/box/files/tmp/f', { content: 'x', mode: 7 }, 'mode', 'PUT'], ['/sandboxes/box/files/tmp/f', { content: 'x', path: '/etc/x' }, 'path', 'PUT'], ['/sandboxes/box/files', { files: {}, more: 1 }, 'more'],
			['/batch/run', { commands: [], more: 1 }, 'more'], ['/snapshots', { sandbox: 'box', more: 1 }, 'more'], ['/sandboxes/box/stop', { timeout: 5 }, 'timeout'], ['/sandboxes/box', { force: true }, 'force', 'DELETE'],
			['/run', { command: ['true'], workdir: '/', cwd: '/tmp' }, 'cwd'], ['/run', { command: ['true'], fast: 'yes' }, 'fast']]) {
			const [status, text] = await said(where, body, method);
			assert.deepEqual([status, text.includes(named)], [400, true], `${where} ${JSON.stringify(body)}: ${text}`);
		}
		assert.match((await said('/run', { command: ['true'], timeot_ms: 5 }))[1], /did you mean 'timeout_ms'/);
		assert.match((await said('/run/stream', { command: ['true'], timeot_ms: 5 }))[1], /event: error\ndata: .*timeot_ms/);
		assert.match((await said('/batch/run', { commands: [{ command: ['true'], timeot_ms: 5 }] }))[1], /timeot_ms/);
		for (const refused of ['volumes', 'secrets', 'secret_files', 'source_url', 'source_ref']) assert.equal((await said('/sandboxes', { name: 'x', [refused]: ['a'] }))[0], 422, refused);
		assert.equal((await said('/run', { command: ['id', '-u'], user: '0', pids: 99, nofile: 64 }))[0], 200);
		assert.equal((await said('/run', { command: ['true'], pids: 99999 }))[0], 403);
		assert.equal((await said('/sandboxes/box/stop', {}))[0], 200);
		assert.equal((await said('/sandboxes', { name: 'small', vcpus: 1, memory_mb: 128 }))[0], 201);
		const info = JSON.parse(spawnSync(program, ['info', '--json', 'small'], { encoding: 'utf8' }).stdout);
		assert.match(`${info.policy.cpus} ${info.policy.memory}`, /^1 .*128/);
		assert.equal((await said('/sandboxes/small/exec', { command: ['sh', '-c', 'echo $A; pwd'], env: ['A=b'], workdir: '/tmp', sudo: false }))[0], 200);
		assert.equal((await fetch(`${s.url}/sandboxes/%ff`)).status, 400);
		for (const name of ['box', 'small']) await fetch(`${s.url}/sandboxes/${name}`, { method: 'DELETE' });
		await s.end();
		const strict = await serve('--cpus', '1');
		assert.equal((await post(strict, '/run', { command: ['true'], vcpus: 8 })).status, 403, 'asked for and more than the ceiling');
		assert.equal((await post(strict, '/run', { command: ['true'] })).status, 200);
		await strict.end();
	},

	async 'every route refuses a member and a query parameter that it does not know'() {
		const s = await serve();
		assert.equal((await post(s, '/sandboxes', { name: 'box' })).status, 201);
		const { paths } = await (await fetch(`${s.url}/openapi.json`)).json();
		// what needs no key answers anybody, and a client of MCP may have a query of its own
		const open = ['/health', '/ready', '/stats', '/status', '/metrics', '/mcp'];
		let routes = 0;
		for (const [path, methods] of Object.entries(paths)) {
			for (const method of Object.keys(methods).map((m) => m.toUpperCase())) {
				if (open.includes(path)) continue;
				const where = s.url + path.replace('{name}', 'box').replace('{id}', '00000000').replace('{path}', 'tmp/f');
				routes++;
				const asked = await fetch(`${where}?timeot_ms=1`, { method, ...(method === 'GET' ? {} : { body: '{}', headers: { 'Content-Type': 'application/json' } }) });
				const text = await asked.text();
				// a body that is not what it must be may be told first
				if (asked.status !== 400 || !text.includes('timeot_ms')) assert.ok(method !== 'GET' && path.endsWith('/stream') === false && asked.status === 400, `${method} ${path}?timeot_ms=1: ${asked.status} ${text}`);
				if (method === 'GET') continue;
				const sent = await fetch(where, { method, body: JSON.stringify({ ...(path === '/snapshots' ? { sandbox: 'box' } : {}), timeot_ms: 1 }), headers: { 'Content-Type': 'application/json' } });
				const said = await sent.text();
				assert.ok([400, ...(path.endsWith('/stream') ? [200] : [])].includes(sent.status) && said.includes('timeot_ms'), `${method} ${path}: ${sent.status} ${said}`);
			}
		}
		assert.ok(routes > 35, String(routes));
		const said = async (where) => { const r = await fetch(s.url + where); return [r.status, (await r.json()).error]; };
		assert.deepEqual(await said('/sandboxes/box/exec/detached/00000000/logs?tail_lines=x'), [400, 'tail_lines: a whole number is expected']);
		assert.deepEqual(await said('/sandboxes?running=yes'), [400, 'running: true or false is expected']);
		assert.deepEqual(await said('/sandboxes/box/files?path=%0'), [400, 'the query has a bad escape']);
		assert.match((await said('/sandboxes/box/files/tmp?offset=0&offset=1'))[1], /given twice/);
		assert.match((await said('/sandboxes/box?running=true'))[1], /unknown parameter 'running' in the query/);
		await fetch(`${s.url}/sandboxes/box`, { method: 'DELETE' });
		await s.end();
	},

	async 'sandboxes are paused, forked, measured, edited, waited for and moved over HTTP'() {
		const s = await serve();
		const ask = async (method, where, body) => {
			const r = await fetch(s.url + where, { method, body: body && JSON.stringify(body), headers: body ? { 'Content-Type': 'application/json' } : {} });
			return { status: r.status, ...await r.json() };
		};
		const data = async (...args) => { const r = await ask(...args); assert.ok(r.success, JSON.stringify(r)); return r.data; };
		await data('POST', '/sandboxes', { name: 'box', cwd: '/srv' });
		assert.equal((await data('POST', '/sandboxes/box/pause')).status, 'paused');
		assert.equal((await data('POST', '/sandboxes/box/pause')).status, 'paused');
		const paused = await ask('POST', '/sandboxes/box/exec', { command: ['true'] });
		assert.deepEqual([paused.status, /paused/.test(paused.error)], [409, true]);
		assert.equal((await data('POST', '/sandboxes/box/resume')).status, 'running');
		const stats = await data('GET', '/sandboxes/box/stats');
		assert.deepEqual([stats.name, 'memory' in stats, stats.network_sent], ['box', true, 0]);
		// files
		await data('PUT', '/sandboxes/box/files/srv/a.txt', { content: 'one two' });
		assert.deepEqual(await data('POST', '/sandboxes/box/edit', { path: 'a.txt', old_text: 'two', new_text: 'three' }), { path: '/srv/a.txt', replaced: 1, bytes: 9 });
		assert.equal((await ask('POST', '/sandboxes/box/edit', { path: 'a.txt', old_text: 'two', new_text: 'x' })).status, 400);
		assert.deepEqual((await data('GET', '/sandboxes/box/files')).entries.map((e) => e.name), ['a.txt']);
		await data('PUT', '/sandboxes/box/files/~/home.txt', { content: 'home' });
		assert.deepEqual(await data('POST', '/sandboxes/box/files', { files: { '~/more.txt': 'more', 'srv/rooted.txt': '/' } }), { written: 2 });
		assert.ok((await data('GET', '/sandboxes/box/files?path=%7E')).entries.filter((e) => ['home.txt', 'more.txt'].includes(e.name)).length === 2);
		assert.equal((await data('POST', '/sandboxes/box/exec', { command: 'cat ~/home.txt ~/more.txt /srv/rooted.txt' })).output, 'homemore/');
		await data('PUT', '/sandboxes/box/files/tmp/dir/x', { content: '' });
		assert.deepEqual([(await ask('DELETE', '/sandboxes/box/files/tmp/dir')).status, (await ask('DELETE', '/sandboxes/box/files/tmp/dir?recursive=true')).status], [400, 200]);
		// commands
		const started = await data('POST', '/sandboxes/box/exec/detach', { command: ['sh', '-c', 'seq 1 5; echo "a  b"; sleep 0.5; exit 7'] });
		assert.ok(started.pid > 0);
		assert.deepEqual(await data('GET', `/sandboxes/box/exec/detached/${started.id}/wait?timeout_ms=50`), { id: started.id, running: true });
		assert.deepEqual(await data('GET', `/sandboxes/box/exec/detached/${started.id}/wait`), { id: started.id, running: false, exit_code: 7 });
		const ended = await data('GET', `/sandboxes/box/exec/detached/${started.id}`);
		assert.deepEqual([ended.command, ended.pid, ended.status, ended.exit_code], [['sh', '-c', 'seq 1 5; echo "a  b"; sleep 0.5; exit 7'], started.pid, 'failed', 7]);
		assert.equal((await data('GET', `/sandboxes/box/exec/detached/${started.id}/logs?tail_lines=2`)).stdout, '5\na  b\n');
		assert.equal((await data('GET', `/sandboxes/box/exec/detached/${started.id}/logs?offset=2&length=2`)).stdout, '2\n');
		// a fork, and rules of the network
		assert.equal((await data('POST', '/sandboxes/box/fork', { new_name: 'twin' })).name, 'twin');
		assert.equal((await data('GET', '/sandboxes/box/network/check?host=example.org')).allowed, true);
		await data('POST', '/sandboxes/box/network', { block: ['example.org'] });
		assert.equal((await data('GET', '/sandboxes/box/network/check?host=example.org')).allowed, false);
		await data('POST', '/sandboxes/box/network', { allow: ['www.example.org'] });
		assert.equal((await data('GET', '/sandboxes/box/network/check?host=www.example.org')).allowed, true);
		assert.equal((await ask('POST', '/sandboxes/box/network', {})).status, 400);
		assert.deepEqual(await data('GET', '/sandboxes/box/network'), []);
		spawnSync(program, ['create', '--image', 'host', 'users']);
		assert.match((await ask('POST', '/sandboxes/users/network', { allow: ['example.org'] })).error, /made by others/);
		await data('POST', '/sandboxes/users/network', { block: ['example.org'] });
		await data('POST', '/snapshots', { sandbox: 'box', name: 'one' });
		assert.deepEqual([(await data('GET', '/snapshots?name=box')).length, (await data('GET', '/snapshots?name=twin')).length], [1, 0]);
		await data('DELETE', '/snapshots/one');
		for (const name of ['box', 'twin', 'users']) await data('DELETE', `/sandboxes/${name}`);
		await s.end();
		// the ceiling holds for rules, too
		const strict = await serve('--network-policy', 'deny', '--allow-host', 'example.org');
		assert.equal((await post(strict, '/sandboxes', { name: 'tight' })).status, 201);
		const wider = await post(strict, '/sandboxes/tight/network', { allow: ['example.com'] });
		assert.equal(wider.status, 403);
		assert.equal((await post(strict, '/sandboxes/tight/network', { allow: ['example.org:443'] })).status, 200);
		await fetch(`${strict.url}/sandboxes/tight`, { method: 'DELETE' });
		await strict.end();
	},

	async 'a file is read whole or not at all, and directories go up and down as archives'() {
		const s = await serve();
		const { AgentKernel } = await load('agentkernel');
		const c = new AgentKernel({ baseUrl: s.url });
		await c.createSandbox('box');
		await c.execInSandbox('box', ['sh', '-c', 'head -c 8388608 /dev/zero | tr "\\0" x > /tmp/f']);
		assert.equal((await c.readFile('box', '/tmp/f')).content.length, 8388608);
		await c.execInSandbox('box', ['sh', '-c', 'echo >> /tmp/f']);
		await assert.rejects(c.readFile('box', '/tmp/f'), /'\/tmp\/f' has 8388609 bytes.*Accept: application\/octet-stream.*offset/);
		assert.equal((await fetch(`${s.url}/sandboxes/box/files/tmp/f`)).status, 413);
		const part = (await (await fetch(`${s.url}/sandboxes/box/files/tmp/f?offset=8388607&length=100`)).json()).data;
		assert.deepEqual([part.content, part.size, part.next_offset], ['x\n', 8388609, undefined]);
		assert.equal((await (await fetch(`${s.url}/sandboxes/box/files/tmp/f`, { headers: { Accept: 'application/octet-stream' } })).arrayBuffer()).byteLength, 8388609);
		// archives
		await c.execInSandbox('box', ['sh', '-c', 'mkdir -p /src/sub; head -c 20000000 /dev/urandom > /src/sub/big; ln -s sub/big /src/link; sha256sum < /src/sub/big > /src/sum']);
		const down = await fetch(`${s.url}/sandboxes/box/archive?path=/src`);
		assert.deepEqual([down.status, down.headers.get('content-type')], [200, 'application/x-tar']);
		const tar = Buffer.from(await down.arrayBuffer());
		assert.ok(tar.length > 20000000);
		for (const type of ['application/x-tar', 'application/octet-stream']) {
			const up = await fetch(`${s.url}/sandboxes/box/archive?path=/copy`, { method: 'PUT', body: tar, headers: { 'Content-Type': type } });
			assert.equal(up.status, 200, await up.text());
			assert.equal((await c.execInSandbox('box', ['sh', '-c', 'cd /copy/src && sha256sum < link | cmp - sum && rm -r /copy && echo same'])).output, 'same\n');
		}
		const cut = await fetch(`${s.url}/sandboxes/box/archive?path=/cut`, { method: 'PUT', body: tar.subarray(0, 1000000), headers: { 'Content-Type': 'application/x-tar' } });
		assert.ok(cut.status >= 400 && /unpack the archive/.test((await cut.json()).error));
		assert.equal((await fetch(`${s.url}/sandboxes/box/archive?path=/absent`)).status, 404);
		assert.equal((await fetch(`${s.url}/sandboxes/box/archive`, { method: 'PUT', body: tar.subarray(0, 10), headers: { 'Content-Type': 'text/plain' } })).status, 415);
		await c.removeSandbox('box');
		assert.equal(await s.end(), 0);
	},

	async 'words that look like options are words'() {
		const s = await serve();
		const said = async (where, body) => {
			const r = await post(s, where, body);
			return [r.status, await r.text()];
		};
		for (const image of ['--profile=permissive', '-v/:/host', '--upload-pack=touch /x'])
			assert.equal((await said('/run', { command: ['true'], image }))[0], 400, image);
		for (const name of ['--help', '-f', '--profile=permissive'])
			assert.equal((await said('/sandboxes', { name }))[0], 400, name);
		let [status, text] = await said('/run', { command: ['--profile', 'permissive', 'true'] });
		assert.match(text, /--profile/);
		assert.ok(status !== 200 || JSON.parse(text).data?.exit_code !== 0, text);
		assert.equal((await said('/sandboxes', { name: 'words' }))[0], 201);
		[status, text] = await said('/sandboxes/words/exec', { command: ['-u', '0', 'true'] });
		assert.ok(status !== 200 || JSON.parse(text).data?.exit_code !== 0, text);
		[status, text] = await said('/sandboxes/words/exec', { command: ['echo', '--', '--help', '-d'] });
		assert.match(text, /-- --help -d/);
		const up = await fetch(`${s.url}/sandboxes/words/files/tmp/--force`, { method: 'PUT', body: 'x', headers: { 'Content-Type': 'application/octet-stream' } });
		assert.equal(up.status, 200);
		assert.equal((await fetch(`${s.url}/sandboxes/-f`, { method: 'DELETE' })).status, 400);
		assert.equal((await fetch(`${s.url}/sandboxes/words`)).status, 200);
		await fetch(`${s.url}/sandboxes/words`, { method: 'DELETE' });
		await s.end();
	},

	async 'files of any size go up and down without being held in memory'() {
		const s = await serve();
		await post(s, '/sandboxes', { name: 'files' });
		const bytes = randomBytes(64 << 20);
		const up = await fetch(`${s.url}/sandboxes/files/files/tmp/big`, { method: 'PUT', body: bytes, headers: { 'Content-Type': 'application/octet-stream' } });
		assert.equal(up.status, 200);
		const down = await fetch(`${s.url}/sandboxes/files/files/tmp/big`, { headers: { Accept: 'application/octet-stream' } });
		const back = Buffer.from(await down.arrayBuffer());
		assert.equal(createHash('sha256').update(back).digest('hex'), createHash('sha256').update(bytes).digest('hex'));
		const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${s.pid}/status`, 'utf8'))[1]);
		assert.ok(sanitized || peak < 48 * 1024, `${peak} KiB`);
		await fetch(`${s.url}/sandboxes/files`, { method: 'DELETE' });
		await s.end();
	},

	async 'a client that goes away takes its command with it'() {
		const s = await serve();
		const mark = `6${process.pid}`;
		const processes = () => readdirSync('/proc').filter((pid) => {
			try { return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `sleep\0${mark}\0`; } catch { return false; }
		}).length;
		for (const where of ['/run', '/run/stream']) {
			const stop = new AbortController();
			const asked = fetch(s.url + where, { method: 'POST', body: JSON.stringify({ command: ['sleep', mark] }), headers: { 'Content-Type': 'application/json' }, signal: stop.signal }).then((r) => r.text());
			for (let i = 0; i < 200 && processes() === 0; i++) await wait(25);
			assert.equal(processes(), 1);
			stop.abort();
			await assert.rejects(asked);
			for (let i = 0; i < 200 && processes() > 0; i++) await wait(25);
			assert.equal(processes(), 0);
		}
		await s.end();
	},

	async 'a long command delays nobody, and too many at once are told to come back'() {
		const s = await serve();
		const long = Array.from({ length: 96 }, () => post(s, '/run', { command: ['sleep', '30'], timeout_ms: 4000 }));
		await wait(1500);
		const began = Date.now();
		assert.equal((await fetch(`${s.url}/health`)).status, 200);
		assert.ok(sanitized || Date.now() - began < 1000);
		const refused = await post(s, '/run', { command: ['true'] });
		assert.deepEqual([refused.status, refused.headers.get('retry-after')], [429, '1']);
		for (const r of long) assert.equal((await r).status, 409);
		assert.equal((await post(s, '/run', { command: ['true'] })).status, 200);
		await s.end();
	},

	async 'slow and silent clients cost nothing to the others'() {
		const s = await serve();
		const idle = Array.from({ length: 1500 }, () => net.connect(s.port, '127.0.0.1').on('error', () => {}));
		const slow = net.connect(s.port, '127.0.0.1');
		slow.write('POST /run HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
		const deaf = net.connect(s.port, '127.0.0.1');
		deaf.pause();
		const body = JSON.stringify({ command: 'head -c 300000000 /dev/zero | tr "\\0" x', timeout_ms: 20000 });
		deaf.write(`POST /run/stream HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
		await wait(1000);
		assert.equal((await (await post(s, '/run', { command: ['echo', 'x'] })).json()).data.output, 'x\n');
		const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${s.pid}/status`, 'utf8'))[1]);
		assert.ok(sanitized || rss < 100 * 1024, `${rss} KiB`);
		for (const c of [...idle, slow, deaf]) c.destroy();
		await s.end();
	},

	async 'told to end, it finishes what it has begun'() {
		const s = await serve();
		const asked = post(s, '/run', { command: 'sleep 1; echo finished' });
		await wait(300);
		const ended = s.end();
		await wait(200);
		await assert.rejects(fetch(`${s.url}/health`));
		assert.equal((await (await asked).json()).data.output, 'finished\n');
		assert.equal(await ended, 0);
	},

	async 'a unix socket is its owner\'s, and needs no key'() {
		writeFileSync('keys', 'a-key\n');
		const where = path.join(process.cwd(), 's.sock');
		const s = await serve('--api-key-file', 'keys', '--listen', `unix:${where}`);
		assert.equal(statSync(where).mode & 0o777, 0o600);
		const answer = await new Promise((done) => http.get({ socketPath: where, path: '/sandboxes', headers: { Host: 'localhost' } }, (r) => { r.resume(); done(r.statusCode); }));
		assert.equal(answer, 200);
		await s.end();
		assert.equal(existsSync(where), false);
	},

	async 'an address that others can reach needs a key'() {
		const child = spawn(program, ['serve', '--listen', '0.0.0.0:18999'], { stdio: ['ignore', 'ignore', 'pipe'] });
		let words = '';
		child.stderr.on('data', (text) => { words += text; });
		assert.equal(await new Promise((done) => child.on('exit', done)), 125);
		assert.match(words, /needs a key/);
	},

	async 'the API describes itself, counts, and tells what happens'() {
		const s = await serve();
		const api = await (await fetch(`${s.url}/openapi.json`)).json();
		assert.ok(api.paths['/run'].post.requestBody.content['application/json'].schema.properties.command);
		assert.ok(api.paths['/sandboxes/{name}/files/{path}'].put);
		const listening = await fetch(`${s.url}/events`, { headers: { Accept: 'text/event-stream' } });
		const reader = listening.body.getReader();
		await post(s, '/sandboxes', { name: 'watched' });
		let told = '';
		for (let i = 0; i < 50 && !told.includes('"type":"start"'); i++) told += new TextDecoder().decode((await reader.read()).value);
		const ids = [...told.matchAll(/^id: (\d+)$/gm)].map((m) => Number(m[1]));
		assert.ok(ids.length >= 2 && told.includes('"sandbox":"watched"'));
		await reader.cancel();
		const again = await fetch(`${s.url}/events`, { headers: { 'Last-Event-ID': String(ids[0]) } });
		const second = again.body.getReader();
		let later = '';
		for (let i = 0; i < 50 && !later.includes(`id: ${ids[1]}`); i++) later += new TextDecoder().decode((await second.read()).value);
		assert.ok(!later.includes(`id: ${ids[0]}\n`));
		await second.cancel();
		await fetch(`${s.url}/sandboxes/watched`, { method: 'DELETE' });
		await s.end();
	},

	async 'figures for Prometheus: starts, latencies, denials, limits and states'() {
		const s = await serve('--network-policy', 'deny');
		const figure = async (name) => Number((await (await fetch(`${s.url}/metrics`)).text()).split('\n').find((line) => line.startsWith(`agentkernel_${name} `))?.split(' ')[1]);
		assert.equal(await figure('starts_total{warm="false"}'), 0);
		await post(s, '/run', { command: ['true'] });
		await post(s, '/run', { command: ['sleep', '5'], timeout_ms: 200 });
		await post(s, '/run', { command: ['sh', '-c', 'getent hosts denied.example.com; exit 1'] });
		await post(s, '/sandboxes', { name: 'counted' });
		const text = await (await fetch(`${s.url}/metrics`)).text();
		assert.match(text, /agentkernel_command_seconds_bucket\{le="\+Inf"\} 3\n/);
		assert.match(text, /agentkernel_starts_total\{warm="false"\} 3\n/);
		assert.match(text, /agentkernel_limits_hit_total\{limit="deadline"\} 1\n/);
		assert.match(text, /agentkernel_limits_hit_total\{limit="memory"\} 0\n/);
		assert.match(text, /agentkernel_denials_total 1\n/);
		assert.match(text, /agentkernel_sandboxes\{state="running"\} 1\n/);
		for (const line of text.trimEnd().split('\n')) assert.match(line, /^(# TYPE [a-z_]+ (counter|gauge|histogram)|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.]+)$/);
		await fetch(`${s.url}/sandboxes/counted`, { method: 'DELETE' });
		assert.equal(await figure('sandboxes{state="running"}'), 0);
		const daemon = (...words) => new Promise((done) => spawn(program, ['daemon', ...words], { stdio: 'ignore' }).on('exit', done));
		assert.equal(await daemon('start'), 0);
		for (let i = 0; i < 100 && !(await figure('starts_total{warm="true"}')); i++) { await post(s, '/run', { command: ['true'] }); await wait(50); }
		assert.ok(await figure('starts_total{warm="true"}') >= 1);
		await daemon('stop');
		await s.end();
	},

	async 'the rate of calls is one for all of a batch'() {
		writeFileSync('agentkernel.toml', '[tools]\nrate_limit = { calls = 3, window = "60s" }\n');
		const s = await serve();
		const told = await (await post(s, '/batch/run', { commands: [1, 2, 3, 4, 5].map((n) => ({ command: ['echo', String(n)] })) })).json();
		assert.deepEqual(told.data.results.slice(0, 3).map((r) => r.output), ['1\n', '2\n', '3\n']);
		for (const r of told.data.results.slice(3)) assert.match(r.error, /try again/);
		const late = await post(s, '/run', { command: ['true'] });
		assert.equal(late.status, 429);
		assert.ok(Number(late.headers.get('retry-after')) >= 1);
		const asked = await (await post(s, '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'sandbox_run', arguments: { command: ['true'] } } })).json();
		assert.match(JSON.stringify(asked), /try again/);
		await s.end();
	},

	async 'snapshots of sandboxes that may do more are not the callers\''() {
		const cli = (...words) => spawnSync(program, words, { encoding: 'utf8' });
		cli('create', '--image', 'host', 'roomy');
		const id = cli('checkpoint', 'create', 'roomy').stdout.trim();
		const s = await serve('--profile', 'restrictive');
		assert.equal((await fetch(`${s.url}/snapshots/${id}`, { method: 'DELETE' })).status, 403);
		assert.equal((await post(s, `/snapshots/${id}/restore`, {})).status, 403);
		assert.match(cli('checkpoint', 'list').stdout, new RegExp(id));
		await s.end();
		const open = await serve();
		assert.equal((await fetch(`${open.url}/snapshots/${id}`, { method: 'DELETE' })).status, 200);
		await open.end();
		cli('remove', '--force', 'roomy');
	},

	async 'a checkpoint is of one sandbox and not of a name, and ids win over comments'() {
		const cli = (...words) => spawnSync(program, words, { encoding: 'utf8' });
		// the disk of a sandbox that could do more, and is gone
		cli('create', '--image', 'host', '--profile', 'permissive', 'box');
		cli('start', 'box');
		cli('exec', 'box', 'sh', '-c', 'echo secret >/var/tmp/secret');
		const loose = cli('checkpoint', 'create', 'box', '--comment', 'before').stdout.trim();
		assert.match(loose, /^[0-9a-f]{12}$/);
		cli('remove', '-f', 'box');
		const s = await serve('--profile', 'restrictive');
		const get = async (where) => { const r = await fetch(s.url + where); return [r.status, (await r.json()).data]; };
		assert.equal((await post(s, '/sandboxes', { name: 'box' })).status, 201);
		const tool = async (name, args) => (await (await post(s, '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } })).json()).result;
		for (const id of [loose, 'before']) {
			assert.equal((await post(s, `/snapshots/${id}/restore`, {})).status, 404, id);
			assert.match(JSON.stringify(await tool('sandbox_restore', { name: 'box', id })), /no checkpoint/, id);
		}
		assert.equal((await post(s, '/sandboxes/box/exec', { command: ['cat', '/var/tmp/secret'] })).status, 409);
		// its own is
		await post(s, '/sandboxes/box/exec', { command: ['sh', '-c', 'echo one >/var/tmp/f'] });
		const first = (await (await post(s, '/snapshots', { sandbox: 'box', name: 'named' })).json()).data.image_tag;
		await post(s, '/sandboxes/box/exec', { command: ['sh', '-c', 'echo two >/var/tmp/f'] });
		// a comment that is another's id
		const second = (await (await post(s, '/snapshots', { sandbox: 'box', name: first })).json()).data.image_tag;
		assert.equal((await get(`/snapshots/${first}`))[1].image_tag, first);
		assert.equal((await post(s, `/snapshots/${first}/restore`, {})).status, 200);
		assert.equal((await (await post(s, '/sandboxes/box/exec', { command: ['cat', '/var/tmp/f'] })).json()).data.output, 'one\n');
		assert.equal((await fetch(`${s.url}/snapshots/${first}`, { method: 'DELETE' })).status, 200);
		assert.deepEqual((await get('/snapshots'))[1].map((n) => n.image_tag).sort(), [loose, second].sort(), 'the one of that id went');
		assert.equal((await fetch(`${s.url}/snapshots/${first}`, { method: 'DELETE' })).status, 404, 'and the comment is not taken for it');
		// a comment that two have
		const twins = [];
		for (let i = 0; i < 2; i++) twins.push((await (await post(s, '/snapshots', { sandbox: 'box', name: 'twin' })).json()).data.image_tag);
		assert.equal((await get('/snapshots/twin'))[0], 400);
		assert.equal((await fetch(`${s.url}/snapshots/twin`, { method: 'DELETE' })).status, 400);
		assert.equal((await post(s, '/snapshots/twin/restore', {})).status, 400);
		assert.equal((await fetch(`${s.url}/snapshots/${twins[0]}`, { method: 'DELETE' })).status, 200);
		assert.equal((await post(s, '/snapshots/twin/restore', {})).status, 200);
		await s.end();
		cli('remove', '-f', 'box');
		cli('checkpoint', 'remove', loose, second, twins[1]);
	},

	async 'of many at once each gets its own answer'() {
		const s = await serve();
		await Promise.all([...Array(8).keys()].map(async (client) => {
			for (let n = 0; n < 150; n++) {
				const answer = await (await post(s, '/run', { command: ['echo', `${client}.${n}`] })).json();
				assert.equal(answer.data?.output, `${client}.${n}\n`, JSON.stringify(answer));
			}
		}));
		await s.end();
	},

	async 'TLS: the same API, encrypted, and nothing of it in the clear'() {
		const made = spawnSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', 'key.pem', '-out', 'cert.pem', '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']);
		assert.equal(made.status, 0, String(made.stderr));
		const port = await freePort();
		const child = spawn(program, ['serve', '--image', 'host', '--listen', `127.0.0.1:${port}`, '--tls-cert', 'cert.pem', '--tls-key', 'key.pem'], { stdio: 'ignore' });
		const curl = (...words) => spawnSync('curl', ['-sS', '--max-time', '10', ...words], { encoding: 'utf8' });
		const url = `https://localhost:${port}`;
		for (let i = 0; i < 200 && curl('--cacert', 'cert.pem', `${url}/health`).status !== 0; i++) await wait(25);
		const ran = curl('--cacert', 'cert.pem', '-d', '{"command":["echo","secret"]}', '-H', 'Content-Type: application/json', `${url}/run`);
		assert.equal(JSON.parse(ran.stdout).data.output, 'secret\n');
		const big = curl('--cacert', 'cert.pem', '-d', '{"command":["head","-c","1000000","/dev/zero"]}', '-H', 'Content-Type: application/json', `${url}/run`);
		assert.ok(big.stdout.length > 1000000);
		assert.notEqual(curl(`${url}/health`).status, 0, 'a client that does not know the certificate');
		assert.notEqual(curl('--tls-max', '1.1', '--cacert', 'cert.pem', `${url}/health`).status, 0, 'an old version');
		const plain = await raw(port, 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n');
		assert.ok(!plain.got.includes('200'), plain.got);
		child.kill('SIGTERM');
		await new Promise((done) => child.on('exit', done));
		const bad = spawnSync(program, ['serve', '--listen', `127.0.0.1:${port}`, '--tls-cert', 'cert.pem'], { encoding: 'utf8' });
		assert.equal(bad.status, 125);
		assert.match(bad.stderr, /--tls-key/);
	},

	async 'a key in the user\'s own file counts, and in a project\'s it is refused'() {
		const home = process.env.HOME;
		mkdirSync(`${home}/.config/agentkernel`, { recursive: true });
		try {
			writeFileSync(`${home}/.config/agentkernel/config.toml`, '[api]\napi_key_env = "OUR_KEY"\n');
			const without = spawnSync(program, ['serve', '--listen', `127.0.0.1:${await freePort()}`], { encoding: 'utf8' });
			assert.equal(without.status, 125);
			assert.match(without.stderr, /OUR_KEY/);
			writeFileSync(`${home}/.config/agentkernel/config.toml`, '[api]\napi_key = "from-the-file"\n');
			const s = await serve();
			assert.equal((await post(s, '/run', { command: ['true'] })).status, 401);
			assert.equal((await post(s, '/run', { command: ['true'] }, { Authorization: 'Bearer from-the-file' })).status, 200);
			await s.end();
		} finally {
			rmSync(`${home}/.config/agentkernel/config.toml`);
		}
		writeFileSync('agentkernel.toml', '[api]\napi_key = "x"\n');
		const projects = spawnSync(program, ['config', 'check'], { encoding: 'utf8' });
		assert.notEqual(projects.status, 0);
		assert.match(projects.stderr + projects.stdout, /only your own config.toml/);
	},

	async 'a server that is started again knows the sandboxes of the one before'() {
		const first = await serve();
		await post(first, '/sandboxes', { name: 'stays' });
		await post(first, '/sandboxes/stays/exec', { command: ['sh', '-c', 'echo kept > /root/f; (sleep 300 & echo $! > /root/pid)'] });
		first.child.kill('SIGKILL');
		await first.closed;
		const second = await serve();
		const list = await (await fetch(`${second.url}/sandboxes`)).json();
		assert.deepEqual(list.data.map((b) => [b.name, b.status]), [['stays', 'running']]);
		const told = await (await post(second, '/sandboxes/stays/exec', { command: ['sh', '-c', 'cat /root/f; kill -0 $(cat /root/pid) && echo runs'] })).json();
		assert.equal(told.data.output, 'kept\nruns\n');
		await fetch(`${second.url}/sandboxes/stays`, { method: 'DELETE' });
		await second.end();
	},

	async 'MCP over HTTP, by both SDKs, in both eras'() {
		const s = await serve();
		const where = new URL(`${s.url}/mcp`);
		const old = await load('@modelcontextprotocol/sdk/client/index.js');
		const oldHttp = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
		const c = new old.Client({ name: 't', version: '1' });
		await c.connect(new oldHttp.StreamableHTTPClientTransport(where));
		assert.equal((await c.listTools()).tools.length, TOOLS);
		const told = [];
		const slow = c.callTool({ name: 'sandbox_run', arguments: { command: ['sleep', '6'] } }, undefined, { onprogress: (p) => told.push(p) });
		assert.equal((await c.callTool({ name: 'sandbox_run', arguments: { command: ['echo', 'x'] } })).structuredContent.stdout, 'x\n');
		await slow;
		assert.ok(told.length >= 1);
		await c.close();
		const m = await load('@modelcontextprotocol/client');
		for (const mode of [undefined, 'auto', { pin: '2026-07-28' }]) {
			const d = new m.Client({ name: 't', version: '1' }, mode ? { versionNegotiation: { mode } } : {});
			await d.connect(new m.StreamableHTTPClientTransport(where));
			assert.equal((await d.listTools()).tools.length, TOOLS);
			assert.equal((await d.callTool({ name: 'sandbox_run', arguments: { command: ['echo', 'y'] } })).structuredContent.stdout, 'y\n');
			await d.close();
		}
		const send = (body, headers = {}) => fetch(where, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body), headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers } });
		assert.equal((await fetch(where)).status, 405);
		assert.equal((await send('{')).status, 400);
		// a client that sends Mcp-Method with every request may still begin with a handshake
		const hello = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 't', version: '1' } } };
		assert.equal((await send(hello, { 'MCP-Protocol-Version': '2025-11-25', 'Mcp-Method': 'initialize' })).status, 200);
		// a subscription is acknowledged, answered and over
		const asked = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} };
		const inModern = (method, params = {}, version = '2026-07-28') => send({ jsonrpc: '2.0', id: 'm', method, params: { ...params, _meta: { ...asked, 'io.modelcontextprotocol/protocolVersion': version } } }, { 'MCP-Protocol-Version': version, 'Mcp-Method': method });
		const heard = (await (await inModern('subscriptions/listen', { notifications: { toolsListChanged: true } })).text()).split('\n').filter((l) => l.startsWith('data: ')).map((l) => JSON.parse(l.slice(6)));
		assert.deepEqual(heard.map((h) => h.method ?? h.result.resultType), ['notifications/subscriptions/acknowledged', 'complete']);
		assert.ok(heard.every((h) => (h.params ?? h.result)._meta['io.modelcontextprotocol/subscriptionId'] === 'm'));
		const supported = (await (await inModern('server/discover')).json()).result.supportedVersions;
		assert.deepEqual((await (await inModern('server/discover', {}, '2099-01-01')).json()).error.data, { supported, requested: '2099-01-01' });
		// an output that was cut can be read, by who got its id
		const told2 = (await (await send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'sandbox_run', arguments: { command: 'seq 1 20000' } } })).json()).result;
		assert.ok(told2.structuredContent.stdout.length < 25000);
		const rest = (await (await send({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'sandbox_exec_output', arguments: { id: told2.structuredContent.output_id, tail_lines: 1 } } })).json()).result;
		assert.equal(rest.structuredContent.output, '20000\n');
		assert.equal((await send({ jsonrpc: '2.0', id: 1, method: 'ping' }, { 'Content-Type': 'text/plain' })).status, 415);
		assert.equal((await send({ jsonrpc: '2.0', method: 'notifications/initialized' })).status, 202);
		assert.equal((await send({ jsonrpc: '2.0', id: 1, method: 'ping' }, { 'Mcp-Session-Id': 'unknown' })).status, 404);
		const first = await send({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18' } });
		const session = first.headers.get('mcp-session-id');
		assert.match(session, /^[\x21-\x7e]{16,}$/);
		assert.equal((await send({ jsonrpc: '2.0', id: 1, method: 'ping' }, { 'Mcp-Session-Id': session })).status, 200);
		assert.equal((await fetch(where, { method: 'DELETE', headers: { 'Mcp-Session-Id': session } })).status, 200);
		assert.equal((await send({ jsonrpc: '2.0', id: 1, method: 'ping' }, { 'Mcp-Session-Id': session })).status, 404);
		const meta = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} } };
		const modern = (method, headers) => send({ jsonrpc: '2.0', id: 1, method, params: meta }, { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, ...headers });
		assert.equal((await modern('tools/list')).status, 200);
		assert.equal((await modern('nonsense')).status, 404);
		const differs = await modern('tools/list', { 'Mcp-Method': 'tools/call' });
		assert.deepEqual([differs.status, (await differs.json()).error.code], [400, -32020]);
		assert.equal((await send({ jsonrpc: '2.0', id: 1, method: 'ping' }, { Origin: 'http://evil.example' })).status, 403);
		await s.end();
	},

	async 'clients that go away in the middle of anything do no harm'() {
		const s = await serve('--timeout', '2s');
		await post(s, '/sandboxes', { name: 'busy' });
		const bodies = [['/run/stream', { command: 'while :; do echo x; done' }], ['/sandboxes/busy/exec/stream', { command: 'while :; do echo x; done' }],
			['/batch/run', { commands: [{ command: ['echo', 'x'] }, { command: ['sleep', '1'] }] }], ['/mcp', [{ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'sandbox_run', arguments: { command: ['sleep', '1'] } } }]]];
		for (let i = 0; i < 40; i++) {
			const [where, body] = bodies[i % bodies.length];
			const text = JSON.stringify(body);
			const c = net.connect(s.port, '127.0.0.1').on('error', () => {});
			c.write(`POST ${where} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
			await wait(5 + (i * 7) % 60);
			c.destroy();
		}
		for (let i = 0; i < 200; i++) {
			const { data } = await (await fetch(`${s.url}/stats`)).json();
			if (data.running === 0) break;
			await wait(50);
			assert.ok(i < 199, 'calls that nobody waits for still run');
		}
		assert.equal((await fetch(`${s.url}/sandboxes/busy/files/x`, { method: 'PUT', body: '{}', headers: { 'Content-Type': 'application/json' } })).status, 400);
		const batch = await (await post(s, '/mcp', [1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'sandbox_run', arguments: { command: ['echo', String(id)] } } })))).json();
		assert.deepEqual(batch.map((b) => [b.id, b.result.structuredContent.stdout]).sort(), [[1, '1\n'], [2, '2\n']]);
		assert.equal((await post(s, '/mcp', [{ jsonrpc: '2.0', method: 'notifications/x' }])).status, 202);
		assert.equal((await fetch(`${s.url}/mcp`, { method: 'POST', headers: { 'Content-Type': 'application/json' } })).status, 400);
		const exec = await (await post(s, '/sandboxes/busy/exec', { command: ['sleep', '30'], timeout_ms: 25000 })).json();
		assert.equal(exec.ended_by, 'deadline');
		const began = Date.now();
		const left = post(s, '/sandboxes/busy/exec/stream', { command: '(cat /dev/zero & cat /dev/zero & sleep 3; kill %1 %2) & exit 0' }).then((r) => r.text());
		await wait(300);
		assert.equal((await fetch(`${s.url}/health`)).status, 200);
		assert.ok(Date.now() - began < 2500);
		await left;
		await fetch(`${s.url}/sandboxes/busy`, { method: 'DELETE' });
		assert.equal(await s.end(), 0);
	},

	async 'a cancel is for a call of the same session alone'() {
		const s = await serve();
		const send = (body, session) => post(s, '/mcp', body, session ? { 'Mcp-Session-Id': session } : {});
		const open = async () => (await send({ jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18' } })).headers.get('mcp-session-id');
		const [a, b] = [await open(), await open()];
		const asked = send({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'sandbox_run', arguments: { command: 'sleep 1; echo done' } } }, a);
		await wait(300);
		assert.equal((await send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }, b)).status, 202);
		assert.equal((await send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } })).status, 202);
		assert.equal((await (await asked).json()).result.structuredContent.stdout, 'done\n');
		const second = send({ jsonrpc: '2.0', id: 8, method: 'tools/call', params: { name: 'sandbox_run', arguments: { command: ['sleep', '60'], timeout_ms: 60000 } } }, a);
		await wait(300);
		await send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 8 } }, a);
		assert.equal((await second).status, 202);
		await s.end();
	},

	async 'no key takes all that a server has, and no body costs more than its bytes'() {
		writeFileSync('keys', 'alice key-of-alice\nbob key-of-bob\n');
		const s = await serve('--api-key-file', 'keys');
		const key = (k) => ({ Authorization: `Bearer key-of-${k}` });
		const memory = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${s.pid}/status`, 'utf8'))[1]);
		const before = memory();
		for (const [where, body] of [['/run', `{"command":["true"],"x":[${'{},'.repeat(4e6)}{}]}`], ['/run', `{"command":[${'"",'.repeat(4e6)}""]}`], ['/mcp', `[${'{},'.repeat(4e6)}{}]`], ['/batch/run', `{"commands":[${'[],'.repeat(4e6)}[]]}`]]) {
			const r = await fetch(s.url + where, { method: 'POST', body, headers: { 'Content-Type': 'application/json', ...key('alice') } });
			assert.ok([400, 413].includes(r.status), `${where} ${r.status}`);
		}
		assert.ok(sanitized || memory() < before + 64 * 1024, `${before} -> ${memory()} KiB`);
		const words = Array.from({ length: 4000 }, () => '[,{:"');
		assert.equal((await (await post(s, '/run', { command: ['sh', '-c', 'echo $#', '-', ...words] }, key('alice'))).json()).data.output, '4000\n', 'what is in texts does not count');
		const raw = (body) => fetch(`${s.url}/run`, { method: 'POST', body, headers: { 'Content-Type': 'application/json', ...key('alice') } });
		assert.equal((await raw('{"command":["true"],"command":["false"]}')).status, 400);
		assert.equal((await raw('{"command":["true"]}')).status, 200);
		// calls
		const long = Array.from({ length: 76 }, () => post(s, '/run', { command: ['sleep', '30'], timeout_ms: 4000 }, key('alice')).then((r) => r.status));
		await wait(1500);
		assert.equal((await (await fetch(`${s.url}/stats`)).json()).data.running, 64);
		assert.equal((await post(s, '/run', { command: ['true'] }, key('alice'))).status, 429);
		assert.match(await (await post(s, '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'sandbox_run', arguments: { command: ['true'] } } }, key('alice'))).text(), /too many calls/);
		assert.equal((await post(s, '/run', { command: ['true'] }, key('bob'))).status, 200);
		assert.deepEqual((await Promise.all(long)).sort(), [...Array(64).fill(409), ...Array(12).fill(429)]);
		// streams
		const listening = [];
		for (let i = 0; i < 512; i++) listening.push(await fetch(`${s.url}/events`, { headers: key('alice') }));
		assert.deepEqual([...new Set(listening.map((r) => r.status))], [200]);
		assert.equal((await fetch(`${s.url}/events`, { headers: key('alice') })).status, 429);
		const his = await fetch(`${s.url}/events`, { headers: key('bob') });
		assert.equal(his.status, 200);
		// all of them are told of something at the same time, and calls go on
		await post(s, '/sandboxes', { name: 'box' }, key('alice'));
		const asked = await Promise.all(Array.from({ length: 16 }, () => post(s, '/run', { command: ['true'] }, key('bob'))));
		assert.deepEqual([...new Set(asked.map((r) => r.status))], [200]);
		for (const r of [...listening, his]) await r.body.cancel();
		// figures need no key: many who ask at once cost one look
		const figures = await Promise.all(Array.from({ length: 200 }, () => fetch(`${s.url}/metrics`).then((r) => r.status)));
		assert.deepEqual([...new Set(figures)], [200]);
		for (let i = 0; i < 100; i++) { if ((await fetch(`${s.url}/events`, { headers: key('alice') }).then(async (r) => { await r.body.cancel(); return r.status; })) === 200) break; await wait(50); assert.ok(i < 99); }
		// sessions
		const open = async (k) => (await post(s, '/mcp', { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-06-18' } }, key(k))).headers.get('mcp-session-id');
		const session = await open('bob');
		for (let i = 0; i < 1100; i++) await open('alice');
		assert.equal((await post(s, '/mcp', { jsonrpc: '2.0', id: 1, method: 'ping' }, { ...key('bob'), 'Mcp-Session-Id': session })).status, 200, 'his session is still there');
		await fetch(`${s.url}/sandboxes/box`, { method: 'DELETE', headers: key('alice') });
		await s.end();
	},

	async 'a storm of sessions, batches, cancels and disconnects of two keys leaves everything as it was'() {
		writeFileSync('keys', 'alice key-of-alice\nbob key-of-bob\n');
		const s = await serve('--api-key-file', 'keys', '--timeout', '3s');
		let seed = Number(process.env.SEED ?? 7);
		const random = (n) => { seed = (seed * 1103515245 + 12345) % 2147483648; return Math.floor(seed / 65536) % n; };
		const key = (k) => ({ Authorization: `Bearer key-of-${k}` });
		const sessions = { alice: [], bob: [] };
		const open = async (k) => (await post(s, '/mcp', { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: '2025-03-26' } }, key(k))).headers.get('mcp-session-id');
		for (const k of ['alice', 'bob']) for (let i = 0; i < 3; i++) sessions[k].push(await open(k));
		const mine = (k) => sessions[k][random(3)];
		const call = (id, k) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: random(3) ? 'sandbox_run' : 'sandbox_list', arguments: random(3) ? { command: ['sh', '-c', `echo ${k}; sleep 0.${random(5)}`] } : random(2) ? { command: ['true'], files: { '/tmp/f': k } } : {}, ...(random(2) ? { _meta: { progressToken: id } } : {}) } });
		const cancel = () => ({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: random(6) } });
		const send = (k, session, body, abort) => fetch(`${s.url}/mcp`, { method: 'POST', body: JSON.stringify(body), signal: abort, headers: { 'Content-Type': 'application/json', Accept: random(2) ? 'application/json, text/event-stream' : 'application/json', ...key(k), ...(session ? { 'Mcp-Session-Id': session } : {}) } });
		const seen = [];
		const one = async () => {
			const k = random(2) ? 'alice' : 'bob';
			const other = k === 'alice' ? 'bob' : 'alice';
			const stop = new AbortController();
			const kind = random(10);
			const asked = kind < 4 ? send(k, mine(k), call(random(6), k), stop.signal)
				: kind < 6 ? send(k, mine(k), Array.from({ length: 1 + random(5) }, () => (random(4) ? call(random(6), k) : cancel())), stop.signal)
					: kind === 6 ? send(k, mine(k), cancel(), stop.signal)
						: kind === 7 ? send(k, mine(other), call(random(6), k), stop.signal).then((r) => { assert.equal(r.status, 404, 'a session of another key'); return r; })
							: kind === 8 ? fetch(`${s.url}/events`, { headers: key(k), signal: AbortSignal.timeout(random(300) + 1) })
								: fetch(`${s.url}/metrics`, { signal: stop.signal });
			if (random(3) === 0) setTimeout(() => stop.abort(), random(200));
			try { const text = await (await asked).text(); if (kind < 6) seen.push([k, text]); } catch (e) { if (e instanceof assert.AssertionError) throw e; }
			if (random(12) === 0) { const at = random(3); await fetch(`${s.url}/mcp`, { method: 'DELETE', headers: { ...key(k), 'Mcp-Session-Id': sessions[k][at] } }); sessions[k][at] = await open(k); }
		};
		const fds = () => readdirSync(`/proc/${s.pid}/fd`).length;
		await Promise.all(Array.from({ length: 4 }, one));
		const before = fds();
		await Promise.all(Array.from({ length: 12 }, async () => { for (let i = 0; i < 25; i++) await one(); }));
		for (const [k, text] of seen) assert.ok(!text.includes(`"stdout":"${k === 'alice' ? 'bob' : 'alice'}`), 'an answer of another key');
		assert.ok(seen.some(([, text]) => text.includes('"stdout":"alice')) && seen.some(([, text]) => text.includes('"stdout":"bob')));
		for (let i = 0; ; i++) {
			const { data } = await (await fetch(`${s.url}/stats`)).json();
			const left = readdirSync(path.join(process.env.AGENTKERNEL_HOME, 'sandboxes')).filter((n) => !n.startsWith('.'));
			if (data.running === 0 && left.length === 0 && fds() <= before + 12) break;
			assert.ok(i < 300, `running ${data.running}, sandboxes ${left}, descriptors ${before} -> ${fds()}`);
			await wait(50);
		}
		assert.equal((await post(s, '/run', { command: ['true'] }, key('alice'))).status, 200);
		assert.equal(await s.end(), 0);
		assert.equal(s.words.includes('assert'), false, s.words);
	},

	async 'two thousand requests leave memory and descriptors where they were'() {
		const s = await serve();
		const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
		const one = (where) => new Promise((done, fail) => http.get({ port: s.port, path: where, agent }, (r) => { r.resume(); r.on('end', done); }).on('error', fail));
		const many = async (count) => {
			let left = count;
			await Promise.all(Array.from({ length: 8 }, async () => { while (left-- > 0) await one(left % 10 ? '/health' : '/sandboxes'); }));
		};
		const figures = () => ({
			fds: readdirSync(`/proc/${s.pid}/fd`).length,
			rss: Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${s.pid}/status`, 'utf8'))[1]),
		});
		await many(300);
		const before = figures();
		await many(2000);
		const after = figures();
		assert.ok(after.fds <= before.fds + 2, `${before.fds} -> ${after.fds}`);
		assert.ok(sanitized || after.rss <= before.rss + 1024, `${before.rss} -> ${after.rss} KiB`);
		agent.destroy();
		await s.end();
	},
};

const name = process.argv[2];
if (name === '--list') {
	console.log(Object.keys(tests).join('\n'));
	process.exit(0);
}
await tests[name]();
process.exit(0);
