// conformance - npm's @modelcontextprotocol/conformance against /mcp. usage: node conformance.mjs 0.1|0.2
//
// Every scenario that docs/design/mcp-conformance.md says "pass" for is run and must pass; every other
// one that the suite has must be in that table with a reason, so that a new suite is looked at.
// AGENTKERNEL is the program, BUILD/clients has the suites (tests/clients/install).
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';

const here = path.dirname(new URL(import.meta.url).pathname);
const which = process.argv[2];
const suite = path.join(process.env.BUILD, 'clients', 'node_modules', which === '0.1' ? 'conformance-legacy' : '@modelcontextprotocol/conformance', 'dist', 'index.js');
const conformance = (...args) => spawnSync(process.execPath, ['--import', path.join(here, 'oldnode.mjs'), suite, ...args], { encoding: 'utf8' });

// | scenario | 0.1.16 | 0.2, legacy | 0.2, modern | why |
const column = { 0.1: [['2025-11-25', 2]], 0.2: [['2025-11-25', 3], ['2026-07-28', 4]] }[which];
const rows = readFileSync(path.join(here, '../../docs/design/mcp-conformance.md'), 'utf8').split('\n')
	.filter((line) => line.startsWith('| `')).map((line) => line.split('|').map((cell) => cell.trim().replaceAll('`', '')));

const listed = conformance('list').stdout.split('Client scenarios')[0].split('\n').filter((l) => l.startsWith('  - ')).map((l) => l.slice(4).split(' ')[0]);
assert.ok(listed.length > 25, listed.join(' '));
for (const name of listed) {
	const row = rows.find((r) => r[1] === name);
	assert.ok(row, `docs/design/mcp-conformance.md has no row for ${name}`);
	assert.ok(column.some(([, at]) => row[at] === 'pass') || row[5], `${name} has neither "pass" nor a reason`);
}

const probe = net.createServer();
const port = await new Promise((done) => probe.listen(0, '127.0.0.1', () => done(probe.address().port)));
await new Promise((done) => probe.close(done));
const server = spawn(process.env.AGENTKERNEL, ['serve', '--image', 'host', '--listen', `127.0.0.1:${port}`], { stdio: ['ignore', 'ignore', 'inherit'] });
process.on('exit', () => server.kill('SIGKILL'));
for (let i = 0; ; i++) {
	try { await fetch(`http://127.0.0.1:${port}/health`); break; } catch { assert.ok(i < 200); await new Promise((done) => setTimeout(done, 25)); }
}

const out = mkdtempSync(path.join(os.tmpdir(), 'conformance-'));
const wrong = [];
let passed = 0;
for (const [version, at] of column) {
	for (const row of rows.filter((r) => r[at] === 'pass' || r[at].startsWith('pass '))) {
		// "pass but CHECK CHECK": these checks need what an execution server does not have
		const without = row[at].startsWith('pass but ') ? row[at].slice(9).split(' ') : [];
		const before = new Set(readdirSync(out));
		const ran = conformance('server', '--url', `http://127.0.0.1:${port}/mcp`, '--scenario', row[1], '--spec-version', version, '-o', out);
		const [made] = readdirSync(out).filter((name) => !before.has(name));
		const checks = made ? JSON.parse(readFileSync(path.join(out, made, 'checks.json'), 'utf8')) : [];
		const failed = checks.filter((c) => c.status === 'FAILURE').map((c) => c.id);
		passed += checks.filter((c) => c.status === 'SUCCESS').length;
		if (!checks.some((c) => c.status === 'SUCCESS')) wrong.push(`${version} ${row[1]}: nothing was checked: ${ran.stdout}${ran.stderr}`);
		for (const id of failed.filter((f) => !without.includes(f))) wrong.push(`${version} ${row[1]}: ${id}: ${checks.find((c) => c.id === id && c.status === 'FAILURE').errorMessage}`);
		for (const id of without.filter((w) => !failed.includes(w))) wrong.push(`${version} ${row[1]}: ${id} does not fail any more: say so in the table`);
	}
}
rmSync(out, { recursive: true });
assert.deepEqual(wrong, []);
console.log(`${passed} checks passed`);
server.kill('SIGTERM');
await new Promise((done) => server.on('exit', done));
process.exit(0);
