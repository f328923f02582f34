// oldnode - lets the conformance suite start on Node 20: node --import oldnode.mjs conformance ...
//
// The suite imports fs.globSync, which came with Node 22 and which only its commands for maintainers
// use. A module cannot be given an export afterwards, so the import is taken out of its source.
import { register } from 'node:module';
import fs from 'node:fs';

const hooks = `
export async function load(url, context, next) {
	const loaded = await next(url, context);
	if (!url.includes('/conformance/dist/') && !url.includes('/conformance-legacy/dist/')) return loaded;
	const source = String(loaded.source);
	const found = /globSync as (\\w+),/.exec(source);
	if (!found) return loaded;
	const head = source.startsWith('#!') ? source.indexOf('\\n') + 1 : 0;
	return { ...loaded, source: source.slice(0, head) + 'const ' + found[1] + '=()=>[];' + source.slice(head).replace(found[0], '') };
}`;

if (!fs.globSync) register(`data:text/javascript,${encodeURIComponent(hooks)}`);
