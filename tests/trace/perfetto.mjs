// SPDX-License-Identifier: MIT
// Asks Perfetto's trace processor: prints the rows of each query as JSON.
//   node perfetto.mjs FOLDER TRACE QUERY...     FOLDER: engine.mjs, engine_bundle.node.js, trace_processor.wasm
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import {pathToFileURL} from 'node:url';
import vm from 'node:vm';

const [folder, trace, ...queries] = process.argv.slice(2);

// The engine is made for a worker of a browser. These are the parts of a worker that it uses.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.location = {href: pathToFileURL(folder).href + '/'};
globalThis.XMLHttpRequest = class {
  open(method, url) {
    this.url = url;
  }
  send() {
    const bytes = readFileSync(new URL(this.url, globalThis.location.href));
    this.response = new Uint8Array(bytes).buffer;
  }
};

const glue = readFileSync(join(folder, 'engine_bundle.node.js'), 'utf8');
vm.runInThisContext(glue.replace('hasMemory64Support()', 'false'));
const {EngineBase} = await import(pathToFileURL(join(folder, 'engine.mjs')).href);
const {port1, port2} = new MessageChannel();
globalThis.onmessage({data: port1});

class Engine extends EngineBase {
  mode = 'WASM';
  id = 'test';
  constructor() {
    super();
    port2.onmessage = (message) => this.onRpcResponseBytes(message.data);
  }
  rpcSendRequestBytes(data) {
    port2.postMessage(data);
  }
}

const engine = new Engine();
await engine.parse(new Uint8Array(readFileSync(trace)));
await engine.notifyEof();
const answers = [];
for (const query of queries) {
  const result = await engine.query(query);
  if (result.error()) {
    throw new Error(result.error());
  }
  const rows = [];
  for (const row = result.iter({}); row.valid(); row.next()) {
    rows.push(Object.fromEntries(result.columns().map((name) => [name, row.get(name)])));
  }
  answers.push(rows);
}
console.log(JSON.stringify(answers, (key, value) => (typeof value === 'bigint' ? Number(value) : value)));
port2.close();
process.exit(0);
