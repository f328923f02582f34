// mcp - the MCP server, spoken to by real clients. usage: node mcp.mjs TEST
//
// Each test is a sentence about the server; a failed assertion is its failure. AGENTKERNEL is the
// program, and the modules are those that tests/clients/install put into the build folder.
import assert from 'node:assert/strict';
import { spawn, execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import path from 'node:path';

const program = process.env.AGENTKERNEL;
const modules = createRequire(path.join(process.env.BUILD, 'clients', 'package.json'));
const load = (name) => import(pathToFileURL(modules.resolve(name)));
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
// a build with sanitizers, which keep what was freed and take their time: neither is measured then
const sanitized = Boolean(process.env.REPORTS);

const serverArgs = (...more) => ['mcp', 'server', '--image', 'host', ...more];

async function oldClient(...more) {
	const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
	const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
	const transport = new StdioClientTransport({ command: program, args: serverArgs(...more), env: process.env, stderr: 'inherit' });
	const client = new Client({ name: 'test', version: '1' });
	await client.connect(transport);
	client.pid = transport.pid;
	return client;
}

async function newClient(mode, ...more) {
	const { Client } = await load('@modelcontextprotocol/client');
	const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
	const transport = new StdioClientTransport({ command: program, args: serverArgs(...more), env: process.env, stderr: 'inherit' });
	const client = new Client({ name: 'test', version: '1' }, mode ? { versionNegotiation: { mode } } : {});
	await client.connect(transport);
	return client;
}

// How many tools there are; every one is used below.
const TOOLS = 28;

const call = (client, name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options);
const callNew = (client, name, args = {}) => client.callTool({ name, arguments: args });

// A server without a client library, for what those would never send.
class Raw {
	constructor(...more) {
		this.child = spawn(program, serverArgs(...more), { stdio: ['pipe', 'pipe', 'inherit'] });
		this.lines = [];
		this.waiting = [];
		this.closed = new Promise((done) => this.child.on('exit', (code) => done(code)));
		let rest = '';
		this.child.stdout.setEncoding('utf8');
		this.child.stdout.on('data', (text) => {
			const parts = (rest + text).split('\n');
			rest = parts.pop();
			for (const part of parts) {
				const message = JSON.parse(part);
				const next = this.waiting.shift();
				if (next) next(message);
				else this.lines.push(message);
			}
		});
	}
	send(message) {
		this.child.stdin.write(typeof message === 'string' || Buffer.isBuffer(message) ? message : JSON.stringify(message) + '\n');
	}
	receive() {
		if (this.lines.length) return Promise.resolve(this.lines.shift());
		return Promise.race([
			new Promise((done) => this.waiting.push(done)),
			wait(20000).then(() => { throw new Error('no answer'); }),
		]);
	}
	async ask(method, params, id = 1) {
		this.send({ jsonrpc: '2.0', id, method, ...(params ? { params } : {}) });
		return this.receive();
	}
	initialize(version = '2025-11-25') {
		return this.ask('initialize', { protocolVersion: version, capabilities: {}, clientInfo: { name: 't', version: '1' } }, 0);
	}
	end() {
		this.child.stdin.end();
		return this.closed;
	}
}

const modern = {
	_meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientCapabilities': {} },
};

// Every tool, through whichever client: ask(name, arguments) gives the result.
async function useEveryTool(ask) {
	const used = new Set();
	const tool = async (name, args) => {
		used.add(name);
		const result = await ask(name, args);
		assert.equal(result.isError ?? false, false, `${name}: ${result.content?.[0]?.text}`);
		assert.ok(result.content[0].text.length > 0);
		return result.structuredContent;
	};
	let r = await tool('sandbox_run', { command: ['sh', '-c', 'cat; echo err >&2; exit 3'], stdin: 'given' });
	assert.deepEqual([r.exit_code, r.stdout, r.stderr, r.ended_by], [3, 'given', 'err\n', 'exit']);
	r = await tool('sandbox_run', { command: 'cat /in/a; base64 /in/b', files: [{ path: '/in/a', content: 'text\n' }, { path: '/in/b', content: 'AAEC', encoding: 'base64' }] });
	assert.equal(r.stdout, 'text\nAAEC\n');
	r = await tool('sandbox_create', { name: 'box', memory: '256MiB', env: { GREETING: 'hello' }, labels: { from: 'test' } });
	assert.deepEqual([r.name, r.state], ['box', 'running']);
	r = await tool('sandbox_exec', { name: 'box', command: 'echo $GREETING $MORE; pwd', env: { MORE: 'there' }, cwd: '/tmp' });
	assert.equal(r.stdout, 'hello there\n/tmp\n');
	await tool('sandbox_file_write', { name: 'box', path: '/data/x', content: 'one\n' });
	await tool('sandbox_file_write', { name: 'box', path: '/data/x', content: 'two\n', append: true });
	await tool('sandbox_file_write', { name: 'box', path: '/data/bin', content: '/wA=', encoding: 'base64' });
	r = await tool('sandbox_file_read', { name: 'box', path: '/data/x', offset: 4 });
	assert.deepEqual([r.content, r.encoding, r.size], ['two\n', 'utf8', 8]);
	r = await tool('sandbox_file_read', { name: 'box', path: '/data/bin' });
	assert.deepEqual([r.content, r.encoding], ['/wA=', 'base64']);
	r = await tool('sandbox_file_list', { name: 'box', path: '/data' });
	assert.deepEqual(r.entries.map((e) => e.name), ['bin', 'x']);
	await tool('sandbox_file_write', { name: 'box', path: '~/notes.txt', content: 'alpha\nbeta\nalpha\n' });
	r = await tool('sandbox_file_edit', { name: 'box', path: '~/notes.txt', old_text: 'beta\n', new_text: 'gamma\ndelta\n' });
	assert.deepEqual([r.replaced, r.bytes], [1, 24]);
	r = await tool('sandbox_exec', { name: 'box', command: 'cat ~/notes.txt' });
	assert.equal(r.stdout, 'alpha\ngamma\ndelta\nalpha\n');
	r = await tool('sandbox_download', { name: 'box', path: '/data' });
	assert.equal(r.bytes, Buffer.from(r.tar, 'base64').length);
	await tool('sandbox_upload', { name: 'box', path: '/copy', tar: r.tar });
	r = await tool('sandbox_exec', { name: 'box', command: 'cat /copy/data/x' });
	assert.equal(r.stdout, 'one\ntwo\n');
	await tool('sandbox_file_remove', { name: 'box', path: '/copy', recursive: true });
	r = await tool('sandbox_exec', { name: 'box', command: 'ls -d /copy' });
	assert.equal(r.exit_code, 2);
	r = await tool('sandbox_exec_start', { name: 'box', command: ['sh', '-c', 'echo begun; sleep 600'] });
	const id = r.id;
	assert.ok(r.pid > 0);
	const { pid } = r;
	r = await tool('sandbox_exec_wait', { name: 'box', id, timeout_ms: 200 });
	assert.deepEqual([r.running, r.exit_code], [true, undefined]);
	for (let i = 0; i < 100; i++) {
		r = await tool('sandbox_exec_output', { name: 'box', id });
		if (r.output) break;
		await wait(50);
	}
	assert.deepEqual([r.output, r.running], ['begun\n', true]);
	const ending = tool('sandbox_exec_wait', { name: 'box', id, timeout_ms: 20000 });
	await tool('sandbox_exec_kill', { name: 'box', id, signal: 'KILL' });
	r = await ending;
	assert.deepEqual([r.running, r.exit_code], [false, 137]);
	r = await tool('sandbox_exec_output', { name: 'box', id });
	assert.deepEqual([r.running, r.exit_code], [false, 137]);
	r = await tool('sandbox_exec_list', { name: 'box' });
	assert.deepEqual(r.entries.map((t) => [t.id, t.pid, t.argv, t.running, t.exit_code]), [[id, pid, ['sh', '-c', 'echo begun; sleep 600'], false, 137]]);
	r = await tool('sandbox_pause', { name: 'box' });
	assert.equal(r.state, 'paused');
	r = await tool('sandbox_resume', { name: 'box' });
	assert.equal(r.state, 'running');
	const spare = await tool('sandbox_checkpoint', { name: 'box', comment: 'spare' });
	const checkpoint = await tool('sandbox_checkpoint', { name: 'box', comment: 'before' });
	r = await tool('checkpoint_list', { name: 'box' });
	assert.deepEqual(r.entries.map((c) => c.comment).sort(), ['before', 'spare']);
	await tool('checkpoint_remove', { id: spare.id });
	r = await tool('checkpoint_list', {});
	assert.deepEqual(r.entries.map((c) => c.id), [checkpoint.id]);
	await tool('sandbox_exec', { name: 'box', command: 'rm -r /data' });
	await tool('sandbox_restore', { name: 'box', id: checkpoint.id });
	r = await tool('sandbox_exec', { name: 'box', command: 'cat /data/x' });
	assert.equal(r.stdout, 'one\ntwo\n');
	await tool('sandbox_fork', { name: 'box', new_name: 'twin' });
	r = await tool('sandbox_list', {});
	assert.deepEqual(r.sandboxes.map((s) => s.name).sort(), ['box', 'twin']);
	r = await tool('sandbox_stop', { name: 'box' });
	assert.equal(r.state, 'stopped');
	r = await tool('sandbox_stop', { name: 'box' });
	assert.match(r.note, /does not run/);
	r = await tool('sandbox_start', { name: 'box' });
	assert.equal(r.state, 'running');
	r = await tool('sandbox_start', { name: 'box' });
	assert.match(r.note, /runs already/);
	r = await tool('sandbox_network_check', { host: '169.254.169.254:80' });
	assert.equal(r.allowed, false);
	await tool('sandbox_exec', { name: 'box', command: 'exec 3<>/dev/tcp/10.0.0.1/80 || true', timeout_ms: 5000 });
	r = await tool('sandbox_network_log', { name: 'box' });
	assert.ok(Array.isArray(r.entries));
	await tool('sandbox_remove', { name: 'box' });
	await tool('sandbox_remove', { name: 'twin' });
	await tool('sandbox_remove', { name: 'twin' });
	await tool('checkpoint_remove', { id: checkpoint.id });
	return used;
}

const tests = {
	async 'sdk 1.x uses every tool'() {
		const client = await oldClient();
		const { tools } = await client.listTools();
		const used = await useEveryTool((name, args) => call(client, name, args));
		assert.deepEqual([...used].sort(), tools.map((t) => t.name).sort());
		await client.close();
	},

	async 'client 2.x uses every tool, with and without a handshake'() {
		for (const mode of [undefined, 'auto', { pin: '2026-07-28' }]) {
			const client = await newClient(mode);
			const { tools } = await client.listTools();
			assert.equal(tools.length, TOOLS);
			if (mode === 'auto') await useEveryTool((name, args) => callNew(client, name, args));
			else assert.equal((await callNew(client, 'sandbox_run', { command: ['echo', 'x'] })).structuredContent.stdout, 'x\n');
			await client.close();
		}
	},

	async 'the inspector lists and calls in both eras'() {
		const inspector = path.join(process.env.BUILD, 'clients', 'node_modules', '.bin', 'mcp-inspector');
		for (const era of [[], ['--protocol-era', 'modern']]) {
			const run = (...more) => JSON.parse(execFileSync(inspector, ['--cli', ...era, program, ...serverArgs(), ...more], { encoding: 'utf8' }));
			assert.equal(run('--method', 'tools/list').tools.length, TOOLS);
			const result = run('--method', 'tools/call', '--tool-name', 'sandbox_run', '--tool-arg', 'command=echo from inside');
			assert.equal(result.structuredContent.stdout, 'from inside\n');
		}
	},

	async 'twenty calls at a time are all answered right, and a long one delays nobody'() {
		const client = await oldClient();
		const long = call(client, 'sandbox_run', { command: ['sleep', '20'], timeout_ms: 3000 });
		const began = Date.now();
		await client.listTools();
		assert.ok(sanitized || Date.now() - began < 1000);
		let next = 0;
		await Promise.all(Array.from({ length: 20 }, async () => {
			while (next < 200) {
				const mine = next++;
				const r = await call(client, 'sandbox_run', { command: ['echo', String(mine)] });
				assert.equal(r.structuredContent.stdout, `${mine}\n`);
			}
		}));
		assert.equal((await long).structuredContent.ended_by, 'deadline');
		await client.close();
	},

	async 'a cancelled call is gone with its sandbox, and the server goes on'() {
		const client = await oldClient();
		for (const extra of [{}, { files: { '/x': 'y' } }]) {
			const stop = new AbortController();
			const mark = `4${process.pid}${Object.keys(extra).length}`;
			const running = call(client, 'sandbox_run', { command: ['sleep', mark], ...extra }, { signal: stop.signal });
			const processes = () => readdirSync('/proc').filter((pid) => {
				try { return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === `sleep\0${mark}\0`; } catch { return false; }
			}).length;
			for (let i = 0; i < 200 && processes() === 0; i++) await wait(25);
			assert.equal(processes(), 1);
			stop.abort();
			await assert.rejects(running);
			for (let i = 0; i < 200 && processes() > 0; i++) await wait(25);
			assert.equal(processes(), 0);
		}
		assert.equal((await call(client, 'sandbox_run', { command: ['true'] })).structuredContent.exit_code, 0);
		for (let i = 0; i < 100; i++) {
			const { sandboxes } = (await call(client, 'sandbox_list')).structuredContent;
			if (sandboxes.length === 0) break;
			await wait(50);
			assert.ok(i < 99, 'a sandbox was left');
		}
		await client.close();
	},

	async 'when standard input closes, running calls end and the server leaves'() {
		const s = new Raw();
		await s.initialize();
		for (let i = 0; i < 3; i++)
			s.send({ jsonrpc: '2.0', id: `r${i}`, method: 'tools/call', params: { name: 'sandbox_run', arguments: { command: ['sleep', '300'], timeout_ms: 300000 } } });
		await wait(500);
		const began = Date.now();
		assert.equal(await s.end(), 0);
		assert.ok(Date.now() - began < 5000);
	},

	async 'eras do not disturb each other, and answers say what they must'() {
		const s = new Raw();
		assert.equal((await s.ask('tools/list')).error.code, -32602);
		assert.deepEqual((await s.ask('ping')).result, {});
		const discovered = (await s.ask('server/discover', modern, 'd')).result;
		assert.deepEqual([discovered.resultType, discovered.supportedVersions, discovered.capabilities], ['complete', ['2026-07-28'], { tools: {} }]);
		assert.equal((await s.ask('initialize', modern)).error.code, -32601);
		const wrong = structuredClone(modern);
		wrong._meta['io.modelcontextprotocol/protocolVersion'] = '2099-01-01';
		const refused = await s.ask('tools/list', wrong);
		assert.deepEqual([refused.error.code, refused.error.data.requested], [-32022, '2099-01-01']);
		assert.equal((await s.ask('tools/list', { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } })).error.code, -32602);
		const list = (await s.ask('tools/list', modern)).result;
		assert.ok(list.ttlMs >= 0 && list.cacheScope === 'public' && list.resultType === 'complete');
		assert.equal((await s.initialize('1999-01-01')).result.protocolVersion, '2025-11-25');
		assert.equal((await s.initialize('2024-11-05')).result.protocolVersion, '2024-11-05');
		assert.deepEqual((await s.ask('tools/list')).result.tools, list.tools);
		assert.equal((await s.ask('tools/list', { cursor: 'x' })).error.code, -32602);
		for (const method of ['resources/list', 'prompts/list', 'logging/setLevel', 'nonsense'])
			assert.equal((await s.ask(method)).error.code, -32601);
		s.send({ jsonrpc: '2.0', id: 'l', method: 'subscriptions/listen', params: { ...modern, notifications: { toolsListChanged: true } } });
		const acknowledged = await s.receive();
		assert.deepEqual([acknowledged.method, acknowledged.params._meta['io.modelcontextprotocol/subscriptionId']], ['notifications/subscriptions/acknowledged', 'l']);
		await s.end();
	},

	async 'batches are for 2025-03-26 alone'() {
		const s = new Raw();
		await s.initialize('2025-03-26');
		s.send([{ jsonrpc: '2.0', id: 1, method: 'ping' }, { jsonrpc: '2.0', method: 'notifications/x' },
			{ jsonrpc: '2.0', id: 'c', method: 'tools/call', params: { name: 'sandbox_run', arguments: { command: ['echo', 'b'] } } }]);
		const answers = await s.receive();
		assert.deepEqual(answers.map((a) => a.id).sort(), [1, 'c'].sort());
		s.send([{ jsonrpc: '2.0', method: 'notifications/x' }]);
		assert.deepEqual((await s.ask('ping')).result, {});
		await s.initialize('2025-06-18');
		s.send([{ jsonrpc: '2.0', id: 1, method: 'ping' }]);
		assert.equal((await s.receive()).error.code, -32600);
		await s.end();
	},

	async 'bad input gets the right answer, and the server goes on'() {
		const s = new Raw();
		await s.initialize();
		const errors = [
			['{nonsense\n', -32700],
			[Buffer.from([0xff, 0xfe, 0x0a]), -32700],
			['"text"\n', -32600],
			['{"jsonrpc":"1.0","id":1,"method":"ping"}\n', -32600],
			['{"jsonrpc":"2.0","id":null,"method":"ping"}\n', -32600],
			['{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n', -32600],
			['{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}\n', -32600],
		];
		for (const [line, code] of errors) {
			s.send(line);
			assert.equal((await s.receive()).error?.code, code, String(line));
		}
		s.send(Buffer.concat([Buffer.alloc(100 << 20, 0x61), Buffer.from('\n')]));
		assert.equal((await s.receive()).error.code, -32600);
		const params = async (p) => s.ask('tools/call', p);
		assert.equal((await params({ name: 'nope', arguments: {} })).error.code, -32602);
		assert.equal((await params({ arguments: {} })).error.code, -32602);
		assert.equal((await params({ name: 'sandbox_run', arguments: [] })).error.code, -32602);
		const tool = async (name, args) => {
			const { result } = await params({ name, arguments: args });
			assert.equal(result.isError, true, JSON.stringify(result));
			assert.equal(result.structuredContent, undefined);
			return result.content[0].text;
		};
		assert.match(await tool('sandbox_run', {}), /command: it is missing/);
		assert.match(await tool('sandbox_run', { command: 7 }), /command: an array/);
		assert.match(await tool('sandbox_run', { command: [] }), /command: an array/);
		assert.match(await tool('sandbox_run', { command: ['a\0b'] }), /NUL/);
		assert.match(await tool('sandbox_run', { command: ['a'], timout_ms: 5 }), /did you mean 'timeout_ms'/);
		assert.match(await tool('sandbox_run', { command: ['a'], timeout_ms: -1 }), /between 1 and/);
		assert.match(await tool('sandbox_run', { command: ['a'], profile: 'none' }), /restrictive, moderate, permissive/);
		assert.match(await tool('sandbox_exec', { name: '../x', command: ['a'] }), /name/);
		assert.match(await tool('sandbox_exec', { name: 'absent', command: ['a'] }), /no sandbox named 'absent'/);
		assert.match(await tool('sandbox_run', { command: ['a'], files: [{ path: '/x', content: '', mode: 7 }] }), /unknown member 'mode'/);
		const r = await params({ name: 'sandbox_run', arguments: { command: ['no-such-program'] } });
		assert.deepEqual([r.result.isError, r.result.structuredContent.exit_code], [false, 127]);
		assert.deepEqual((await s.ask('ping', undefined, 2 ** 40)).id, 2 ** 40);
		await s.end();
	},

	async 'long output is cut in its middle between characters, and all of it can be read'() {
		const client = await oldClient();
		const r = (await call(client, 'sandbox_run', { command: "i=0; while [ $i -lt 20000 ]; do echo \"$i äöü€\"; i=$((i+1)); done" })).structuredContent;
		assert.ok(Buffer.byteLength(r.stdout) < 25000 && r.stdout.startsWith('0 äöü€\n') && r.stdout.endsWith('19999 äöü€\n'));
		assert.match(r.stdout, /bytes left out here/);
		assert.ok(!r.stdout.includes('\ufffd'));
		let all = '', offset = 0;
		while (offset < r.stdout_bytes) {
			const part = (await call(client, 'sandbox_exec_output', { id: r.output_id, offset, length: 100000 })).structuredContent;
			all += part.output;
			offset = part.next_offset;
		}
		assert.equal(all.replaceAll('\ufffd', '').length > 0, true);
		assert.equal(offset, r.stdout_bytes);
		const binary = (await call(client, 'sandbox_run', { command: "printf 'a\\377b'" })).structuredContent;
		assert.equal(binary.stdout, 'a\ufffdb');
		await client.close();
	},

	async 'nobody gets more than the server was started with'() {
		const client = await oldClient('--profile', 'restrictive');
		const refuse = async (name, args, words) => {
			const r = await call(client, name, args);
			assert.equal(r.isError, true, JSON.stringify(r));
			assert.match(r.content[0].text, words);
		};
		const r = (await call(client, 'sandbox_run', { command: 'id -u; touch /x' })).structuredContent;
		assert.equal(r.stdout, '1000\n');
		await refuse('sandbox_run', { command: ['true'], memory: '4GiB' }, /memory/);
		// a preset is intersected with what the server allows, and the answer says what is missing
		for (const [preset, missing] of [[{ profile: 'moderate' }, /user = /], [{ network: true }, /network = /], [{ profile: 'permissive' }, /home = /], [{ compatibility_mode: 'claude' }, /workspace = /]]) {
			const lowered = (await call(client, 'sandbox_run', { command: 'id -u; tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " "; touch /x', ...preset })).structuredContent;
			assert.equal(lowered.stdout, '1000\nlo\n', JSON.stringify(preset));
			assert.match(lowered.notes, missing);
			assert.match(lowered.stderr, /Read-only file system/);
		}
		execFileSync(program, ['create', '--image', 'host', 'roomy']);
		await refuse('sandbox_exec', { name: 'roomy', command: ['id'] }, /may do more than you/);
		await refuse('sandbox_file_write', { name: 'roomy', path: '/x', content: '' }, /may do more than you/);
		await refuse('sandbox_fork', { name: 'roomy', new_name: 'other' }, /may do more than you/);
		const saved = execFileSync(program, ['checkpoint', 'create', 'roomy'], { encoding: 'utf8' }).trim();
		await refuse('sandbox_restore', { name: 'roomy', id: saved }, /may do more than you/);
		execFileSync(program, ['checkpoint', 'remove', saved]);
		assert.match(execFileSync(program, ['audit', '--type', 'denied'], { encoding: 'utf8' }), /sandbox_exec/);
		execFileSync(program, ['remove', 'roomy']);
		await client.close();
	},

	async 'tools, commands and rates are what the configuration says'() {
		writeFileSync('agentkernel.toml', '[tools]\nallow = ["sandbox_run", "sandbox_list"]\ncommands = { block = ["curl"] }\nrate_limit = { calls = 3, window = "60s" }\n');
		const client = await oldClient();
		const text = async (name, args) => (await call(client, name, args)).content[0].text;
		assert.match(await text('sandbox_create', { name: 'x' }), /'sandbox_create' is not allowed/);
		assert.match(await text('sandbox_run', { command: 'true && curl http://x' }), /'curl' is blocked/);
		assert.match(await text('sandbox_run', { command: ['true'] }), /exit code 0/);
		assert.match(await text('sandbox_run', { command: ['true'] }), /exit code 0/);
		assert.match(await text('sandbox_run', { command: ['true'] }), /try again in \d+ ms/);
		assert.match(await text('sandbox_list', {}), /sandboxes/);
		await client.close();
	},

	async 'a denied host comes with its rule and what would allow it'() {
		const client = await oldClient('--network-policy', 'deny', '--allow-host', 'example.org');
		const r = await call(client, 'sandbox_run', { command: 'getent hosts forbidden.example.com' });
		assert.equal(r.structuredContent.denied[0].host, 'forbidden.example.com');
		assert.match(r.structuredContent.denied[0].fix, /'forbidden\.example\.com' in \[network\] allow of the user's agentkernel\.toml/);
		assert.match(r.content[0].text, /only the user can allow it: 'forbidden\.example\.com'/);
		const check = (await call(client, 'sandbox_network_check', { host: 'forbidden.example.com' })).structuredContent;
		assert.equal(check.allowed, false);
		await client.close();
	},

	async 'what a model reads is short, ids come first, and what is ours is apart from what was printed'() {
		const client = await oldClient('--network-policy', 'deny');
		const long = await call(client, 'sandbox_run', { command: 'getent hosts denied.example.com; seq 1 20000; seq 1 20000 >&2; exit 3' });
		const { structuredContent: s, content: [{ text }] } = long;
		assert.ok(Buffer.byteLength(text) < 26 * 1024 && Buffer.byteLength(s.stdout) + Buffer.byteLength(s.stderr) < 25 * 1024);
		assert.match(text, /^output_id out-[0-9a-f]{16}: .*sandbox_exec_output.*\nexit code 3 \(\d+ ms\)\ndenied: denied\.example\.com:/);
		assert.equal(Object.keys(s)[0], 'output_id');
		assert.ok(text.indexOf('denied:') < text.indexOf('--- stdout, 108894 bytes ---\n1\n2\n'));
		assert.ok(text.endsWith('19999\n20000\n') && text.includes('19999\n20000\n--- stderr, 108894 bytes ---\n1\n'));
		// a stream that needs less leaves its part to the other
		const one = (await call(client, 'sandbox_run', { command: 'seq 1 4000' })).structuredContent;
		assert.deepEqual([one.stdout_bytes, one.stdout.length, one.output_id], [18893, 18893, undefined]);
		const read = async (args) => (await call(client, 'sandbox_exec_output', { id: s.output_id, ...args })).structuredContent;
		let part = await read({ tail_lines: 2, stream: 'stderr' });
		assert.deepEqual([part.output, part.offset, part.next_offset], ['19999\n20000\n', 108882, 108894]);
		part = await read({ tail_bytes: 6 });
		assert.deepEqual([part.output, part.offset], ['20000\n', 108888]);
		part = await read({});
		assert.deepEqual([part.output.length, part.next_offset], [24576, 24576]);
		assert.equal((await call(client, 'sandbox_exec_output', { id: s.output_id, tail_lines: 1, offset: 0 })).isError, true);
		assert.match((await call(client, 'sandbox_exec_output', { id: s.output_id, ofset: 0 })).content[0].text, /did you mean 'offset'/);
		// of a command that nobody waits for
		await call(client, 'sandbox_create', { name: 'box' });
		const started = await call(client, 'sandbox_exec_start', { name: 'box', command: 'seq 1 20000' });
		assert.match(started.content[0].text, /^\{"id":"[0-9a-f]{8}"/);
		const { id } = started.structuredContent;
		assert.deepEqual((await call(client, 'sandbox_exec_wait', { name: 'box', id })).structuredContent, { id, running: false, exit_code: 0 });
		const last = (await call(client, 'sandbox_exec_output', { name: 'box', id, tail_lines: 3 })).structuredContent;
		assert.deepEqual([last.output, last.next_offset], ['19998\n19999\n20000\n', 108894]);
		assert.match((await call(client, 'sandbox_exec_wait', { name: 'box', id: '00000000' })).content[0].text, /no command 00000000/);
		// a list that is too long says so, and goes on after its last name
		await call(client, 'sandbox_exec', { name: 'box', command: 'mkdir /many; cd /many; seq -f file-with-a-long-name-%04g 1 600 | xargs touch' });
		const names = [];
		for (let after = {}, cut = true; cut;) {
			const page = await call(client, 'sandbox_file_list', { name: 'box', path: '/many', ...after });
			assert.ok(page.content[0].text.length < 26 * 1024);
			cut = page.structuredContent.cut;
			assert.equal(page.structuredContent.left_out ?? 0, 600 - names.length - page.structuredContent.entries.length);
			names.push(...page.structuredContent.entries.map((e) => e.name));
			after = { after: names.at(-1) };
		}
		assert.deepEqual([names.length, names.at(-1)], [600, 'file-with-a-long-name-0600']);
		await call(client, 'sandbox_remove', { name: 'box' });
		await client.close();
	},

	async 'messages name tools and parameters, not commands and options'() {
		const client = await oldClient('--network-policy', 'deny');
		const said = async (name, args) => {
			const { content: [{ text }], structuredContent } = await call(client, name, args);
			const all = `${text} ${JSON.stringify(structuredContent ?? '')}`;
			assert.doesNotMatch(all, /agentkernel (start|stop|remove|list|resume|run|ps|checkpoint)|--(memory|timeout|allow-host|workdir|user|image|network|ttl|pids)/, all);
			return text;
		};
		assert.match(await said('sandbox_exec', { name: 'absent', command: ['a'] }), /no sandbox named 'absent' \(see sandbox_list\)/);
		assert.match(await said('sandbox_run', { command: 'sleep 5', timeout_ms: 200 }), /ended after 200 ms \(timeout_ms\)|ended by its deadline \(timeout_ms\)/);
		// where cgroups can be made
		if (process.getuid() === 0)
			assert.match(await said('sandbox_run', { command: ['tail', '/dev/zero'], memory: '32MiB', timeout_ms: 20000 }), /raise it with memory/);
		assert.match(await said('sandbox_run', { command: ['podman', 'ps'] }), /exit code/);
		await call(client, 'sandbox_create', { name: 'box' });
		assert.match(await said('sandbox_create', { name: 'box' }), /sandbox_remove removes it/);
		assert.match(await said('sandbox_exec', { name: 'box', command: ['a'], user: 'nobody-knows' }), /^user: /);
		assert.match(await said('sandbox_exec_output', { name: 'box', id: 'x' }), /invalid command id 'x' \(.*see sandbox_exec_list\)/);
		assert.match(await said('checkpoint_remove', { id: '0123456789ab' }), /no checkpoint/);
		assert.match(await said('sandbox_restore', { name: 'box', id: 'nope' }), /no checkpoint/);
		await call(client, 'sandbox_pause', { name: 'box' });
		assert.match(await said('sandbox_exec', { name: 'box', command: ['a'] }), /paused/);
		await call(client, 'sandbox_stop', { name: 'box' });
		assert.match(await said('sandbox_exec_kill', { name: 'box', id: '00000000' }), /not running \(sandbox_start\)/);
		assert.match(await said('sandbox_network_check', { name: 'box', host: 'example.org' }), /'example\.org(:443)?' in \[network\] allow of the user's agentkernel\.toml/);
		await call(client, 'sandbox_remove', { name: 'box' });
		await client.close();
	},

	async 'the list of tools costs at most 4,000 tokens'() {
		const { countTokens } = await load('@anthropic-ai/tokenizer');
		const s = new Raw();
		await s.initialize();
		const { tools } = (await s.ask('tools/list')).result;
		const tokens = countTokens(JSON.stringify(tools));
		assert.ok(tokens <= 4000, `${tokens} tokens`);
		assert.ok(countTokens(JSON.stringify(tools.slice(0, 2))) > 500, 'it does count');
		await s.end();
	},

	async 'a path is absolute, in the home, or in the working directory'() {
		const client = await oldClient();
		const ask = async (name, args) => {
			const r = await call(client, name, { name: 'box', ...args });
			return r.isError ? r.content[0].text : r.structuredContent;
		};
		await ask('sandbox_create', { cwd: '/srv' });
		const home = (await ask('sandbox_exec', { command: 'echo $HOME' })).stdout.trim();
		for (const [given, meant] of [['a.txt', '/srv/a.txt'], ['./b/c.txt', '/srv/b/c.txt'], ['../d.txt', '/d.txt'], ['~/e.txt', `${home}/e.txt`], ['/f.txt', '/f.txt']]) {
			assert.equal((await ask('sandbox_file_write', { path: given, content: given })).path, meant);
			assert.equal((await ask('sandbox_exec', { command: ['cat', meant] })).stdout, given);
			assert.equal((await ask('sandbox_file_read', { path: given })).content, given);
			assert.equal((await ask('sandbox_file_edit', { path: given, old_text: given, new_text: 'new' })).path, meant);
			assert.equal((await ask('sandbox_exec', { command: ['cat', meant] })).stdout, 'new');
		}
		assert.deepEqual((await ask('sandbox_file_list', {})).entries.map((e) => e.name), ['a.txt', 'b']);
		assert.ok((await ask('sandbox_file_list', { path: '~' })).entries.some((e) => e.name === 'e.txt'));
		assert.equal((await ask('sandbox_exec', { command: 'pwd', cwd: 'b' })).stdout, '/srv/b\n');
		assert.equal((await ask('sandbox_exec', { command: 'pwd', cwd: '~' })).stdout, `${home}\n`);
		assert.match(await ask('sandbox_file_read', { path: '../../x' }), /above the root/);
		assert.match(await ask('sandbox_file_read', { path: '~other/x' }), /only ~/);
		assert.match(await ask('sandbox_file_remove', { path: 'b' }), /not empty \(set recursive/);
		await ask('sandbox_file_remove', { path: 'b', recursive: true });
		assert.deepEqual((await ask('sandbox_file_list', {})).entries.map((e) => e.name), ['a.txt']);
		await ask('sandbox_remove', {});
		const run = (await call(client, 'sandbox_run', { command: 'cat a/b.txt ~/c.txt; pwd', cwd: '/srv', files: { 'a/b.txt': 'one\n', '~/c.txt': 'two\n' } })).structuredContent;
		assert.equal(run.stdout, 'one\ntwo\n/srv\n');
		await client.close();
	},

	async 'an edit matches exactly once, and a file is read whole or not at all'() {
		const client = await oldClient();
		const ask = async (name, args) => {
			const r = await call(client, name, { name: 'box', path: '/tmp/f', ...args });
			return r.isError ? r.content[0].text : r.structuredContent;
		};
		await call(client, 'sandbox_create', { name: 'box' });
		const edit = (old_text, new_text, more) => ask('sandbox_file_edit', { old_text, new_text, ...more });
		const text = async () => (await ask('sandbox_file_read', {})).content;
		assert.match(await edit('a', 'b'), /no '\/tmp\/f' in the sandbox/);
		assert.equal(await edit('a', 'b', { path: '/tmp' }), "'/tmp' is a directory");
		assert.match(await ask('sandbox_file_list', { path: '/etc/passwd' }), /is not a directory/);
		assert.match(await ask('sandbox_file_write', { path: '/etc/passwd/x', content: '' }), /is not a directory/);
		await ask('sandbox_file_write', { content: 'aXbXc äß\n' });
		await call(client, 'sandbox_exec', { name: 'box', command: 'chmod 640 /tmp/f; ln /tmp/f /tmp/g; ln -s f /tmp/h' });
		assert.match(await edit('X', 'Y'), /2 times \(.*replace_all/);
		assert.match(await edit('nope', 'Y'), /does not contain it/);
		assert.match(await edit('', 'Y'), /it is empty/);
		assert.equal(await text(), 'aXbXc äß\n');
		assert.equal((await edit('X', '--', { replace_all: true })).replaced, 2);
		assert.equal(await text(), 'a--b--c äß\n');
		assert.equal((await edit('a--b--c äß\n', '')).bytes, 0);
		assert.equal(await text(), '');
		assert.match(await edit('x', 'y'), /does not contain it/);
		await ask('sandbox_file_write', { content: 'via a link\n' });
		assert.equal((await edit('link', 'hard link', { path: '/tmp/h' })).replaced, 1);
		const r = (await call(client, 'sandbox_exec', { name: 'box', command: 'cat /tmp/g; stat -c %a%h /tmp/f' })).structuredContent;
		assert.equal(r.stdout, 'via a hard link\n6402\n');
		// reading: all of it, or an error that says how
		await call(client, 'sandbox_exec', { name: 'box', command: 'head -c 24576 /dev/zero | tr "\\0" x > /tmp/f' });
		assert.equal((await text()).length, 24576);
		await call(client, 'sandbox_exec', { name: 'box', command: 'printf y >> /tmp/f' });
		assert.match(await ask('sandbox_file_read', {}), /'\/tmp\/f' has 24577 bytes, more than the 24576 that are read at once: .*offset and length/);
		let part = await ask('sandbox_file_read', { offset: 24576 });
		assert.deepEqual([part.content, part.next_offset], ['y', undefined]);
		part = await ask('sandbox_file_read', { length: 24577 });
		assert.deepEqual([part.content.length, part.size], [24577, 24577]);
		part = await ask('sandbox_file_read', { offset: 0 });
		assert.deepEqual([part.content.length, part.next_offset], [24576, 24576]);
		await call(client, 'sandbox_remove', { name: 'box' });
		await client.close();
	},

	async 'archives stay in their directory, and large ones are refused in words'() {
		const client = await oldClient();
		const ask = async (name, args) => {
			const r = await call(client, name, { name: 'box', ...args });
			return r.isError ? r.content[0].text : r.structuredContent;
		};
		const tar = (entries) => Buffer.concat([...entries.map(([name, type, content = '', link = '']) => {
			const head = Buffer.alloc(512);
			head.write(name, 0);
			head.write('0000644\0', 100); head.write('0000000\0', 108); head.write('0000000\0', 116);
			head.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124); head.write('00000000000\0', 136);
			head.write('        ', 148); head.write(type, 156); head.write(link, 157); head.write('ustar\x0000', 257);
			head.write(`${head.reduce((a, b) => a + b, 0).toString(8).padStart(6, '0')}\0 `, 148);
			return Buffer.concat([head, Buffer.from(content.padEnd(Math.ceil(content.length / 512) * 512, '\0'))]);
		}), Buffer.alloc(1024)]).toString('base64');
		await ask('sandbox_create', {});
		await ask('sandbox_exec', { command: 'echo kept > /tmp/canary' });
		assert.equal((await ask('sandbox_upload', { path: 'up/here', tar: tar([['a', '0', 'A'], ['d/b', '0', 'B']]) })).note, 'unpacked');
		assert.equal((await ask('sandbox_exec', { command: 'cat up/here/a up/here/d/b' })).stdout, 'AB');
		for (const entries of [[['../../tmp/canary', '0', 'gone']], [['l', '2', '', '/tmp'], ['l/canary', '0', 'gone']], [['/tmp/canary', '0', 'gone']]])
			await ask('sandbox_upload', { path: '/bad', tar: tar(entries) });
		assert.equal((await ask('sandbox_exec', { command: 'cat /tmp/canary' })).stdout, 'kept\n');
		assert.match(await ask('sandbox_upload', { path: '/bad', tar: 'bm8gdGFy' }), /unpack the archive/);
		assert.match(await ask('sandbox_upload', { path: '/bad', tar: '!' }), /tar: not base64/);
		await ask('sandbox_exec', { command: 'mkdir /big; head -c 3000000 /dev/urandom > /big/f' });
		assert.match(await ask('sandbox_download', { path: '/big' }), /more than 2097152 bytes: download parts/);
		assert.match(await ask('sandbox_download', { path: '/absent' }), /no '\/absent'/);
		await ask('sandbox_remove', {});
		await client.close();
	},

	async 'progress is told to who asks, and only then'() {
		const client = await oldClient();
		const told = [];
		await call(client, 'sandbox_run', { command: ['sleep', '6'] }, { onprogress: (p) => told.push(p.progress) });
		assert.ok(told.length >= 1);
		assert.deepEqual(told, [...told].sort((a, b) => a - b));
		await client.close();
	},

	async 'a thousand calls leave memory and descriptors where they were'() {
		const client = await oldClient();
		const figures = () => ({
			fds: readdirSync(`/proc/${client.pid}/fd`).length,
			rss: Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${client.pid}/status`, 'utf8'))[1]),
		});
		const many = async (count) => {
			let left = count;
			await Promise.all(Array.from({ length: 4 }, async () => {
				while (left-- > 0) await call(client, 'sandbox_run', { command: ['true'] });
			}));
		};
		await many(100);
		const before = figures();
		await many(1000);
		const after = figures();
		assert.equal(after.fds, before.fds);
		assert.ok(sanitized || after.rss <= before.rss + 1024, `${before.rss} -> ${after.rss} KiB`);
		await client.close();
	},

	async 'every answer is valid against the schema of its revision'() {
		const folder = process.env.MCP_SCHEMAS;
		if (!folder || !existsSync(path.join(folder, '2025-11-25.json'))) {
			console.log('skip: the published schemas are not here');
			return;
		}
		const { default: Ajv2020 } = await load('ajv/dist/2020.js');
		const { default: Ajv } = await load('ajv');
		const { default: addFormats } = await load('ajv-formats');
		const checkers = (revision) => {
			const schema = JSON.parse(readFileSync(path.join(folder, `${revision}.json`), 'utf8'));
			const Kind = schema.$schema?.includes('2020-12') ? (Ajv2020.default ?? Ajv2020) : (Ajv.default ?? Ajv);
			const ajv = new Kind({ strict: false, allErrors: true });
			(addFormats.default ?? addFormats)(ajv);
			ajv.addSchema(schema, 's');
			const key = schema.$defs ? '$defs' : 'definitions';
			return (name, value) => {
				const check = ajv.getSchema(`s#/${key}/${name}`);
				assert.ok(check, `${revision} has no ${name}`);
				assert.ok(check(value), `${revision} ${name}: ${JSON.stringify(check.errors)}\n${JSON.stringify(value).slice(0, 500)}`);
			};
		};
		for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
			const valid = checkers(revision);
			const s = new Raw();
			valid('InitializeResult', (await s.initialize(revision)).result);
			valid('ListToolsResult', (await s.ask('tools/list')).result);
			valid('CallToolResult', (await s.ask('tools/call', { name: 'sandbox_run', arguments: { command: ['echo', 'x'] } })).result);
			valid('CallToolResult', (await s.ask('tools/call', { name: 'sandbox_run', arguments: {} })).result);
			await s.end();
		}
		const valid = checkers('2026-07-28');
		const s = new Raw();
		valid('DiscoverResult', (await s.ask('server/discover', modern)).result);
		valid('ListToolsResult', (await s.ask('tools/list', modern)).result);
		valid('CallToolResult', (await s.ask('tools/call', { ...modern, name: 'sandbox_run', arguments: { command: ['echo', 'x'] } })).result);
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
