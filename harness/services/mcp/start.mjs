// Starts the MCP server `server-everything` on this machine alone: by itself it would listen on all
// addresses.
//
//     start.mjs FOLDER PORT [TRANSPORT]
//
// TRANSPORT is `streamableHttp` (the default) or `sse`.

import net from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const SCRIPT = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";

const [node, , folder, port, transport = "streamableHttp"] = process.argv;
const { listen } = net.Server.prototype;
net.Server.prototype.listen = function (at, ...more) {
  return listen.call(this, at, "127.0.0.1", ...more);
};
process.env.PORT = port;
const script = join(folder, SCRIPT);
process.argv = [node, script, transport];
await import(pathToFileURL(script));
