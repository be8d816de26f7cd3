// dynalite for tests: tables are there at once, on a free port, until standard input ends.
//
// It runs from the folder that its packages are installed in (the working directory). The port is the first line on standard output.

"use strict";

const path = require("node:path");
const dynalite = require(path.join(process.cwd(), "node_modules", "dynalite"));

const server = dynalite({ createTableMs: 0, deleteTableMs: 0, updateTableMs: 0 });
server.listen(0, "127.0.0.1", () => console.log(server.address().port));

// It ends with whoever holds the other end of standard input, also one that was killed.
process.stdin.on("end", () => process.exit(0)).resume();
