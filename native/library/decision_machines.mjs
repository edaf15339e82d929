// The native engine of Decision Machines in browsers and node, as WebAssembly.
//
//     import {open} from "./decision_machines.mjs";
//     const engine = await open(await (await fetch("decision_machines.wasm")).arrayBuffer());
//     const model = engine.load(await (await fetch("model.dm")).arrayBuffer());
//     model.margin(rows);  // a Float64Array of rows, one after the other; NaN is missing
//
// Margins are the machine's to the bit. Links, labels and names are in `model.about`.

const ROOM = 500; // bytes for the text of an error

/** The engine of the bytes of decision_machines.wasm (or of a compiled WebAssembly.Module). */
export async function open(wasm) {
  let memory = null;
  const clock = (_kind, _precision, at) => {
    const nanoseconds = BigInt(Math.round(performance.now() * 1e6));
    new DataView(memory.buffer).setBigUint64(at, nanoseconds, true);
    return 0;
  };
  const end = (code) => {
    throw new Error(`the engine stopped with ${code}`);
  };
  const imports = {
    env: { emscripten_notify_memory_growth() {} },
    wasi_snapshot_preview1: { clock_time_get: clock, proc_exit: end },
  };
  const made = await WebAssembly.instantiate(wasm, imports);
  const engine = (made.instance ?? made).exports;
  memory = engine.memory;
  engine._initialize?.();
  return { load: (bytes) => new Model(engine, new Uint8Array(bytes)) };
}

/** A model of a .dm file. `free()` gives its memory back; nothing else does. */
class Model {
  #engine;
  #model = 0;

  constructor(engine, bytes) {
    this.#engine = engine;
    this.#model = this.#with([bytes.length, ROOM], ([at, error]) => {
      new Uint8Array(engine.memory.buffer, at, bytes.length).set(bytes);
      const model = engine.dm_model_load_bytes(at, bytes.length, error, ROOM);
      if (!model) throw new Error(this.#text(error));
      return model;
    });
    this.nFeatures = Number(engine.dm_model_n_features(this.#model));
    this.nOutputs = Number(engine.dm_model_n_outputs(this.#model));
    this.nTrees = Number(engine.dm_model_n_trees(this.#model));
    this.about = JSON.parse(this.#text(engine.dm_model_describe(this.#model)));
  }

  /** Margins of rows that follow each other: a Float64Array, row by row. */
  margin(rows) {
    return this.#ask("dm_model_margin", rows, this.nOutputs, Float64Array);
  }

  /** Exit leaves of each row, one for every tree, counted from 0 left to right: an Int32Array. */
  apply(rows) {
    return this.#ask("dm_model_apply", rows, this.nTrees, Int32Array);
  }

  free() {
    this.#engine.dm_model_free(this.#model);
    this.#model = 0;
  }

  #ask(name, rows, width, Kind) {
    if (!this.#model) throw new Error("the model was freed");
    const n = rows.length / this.nFeatures;
    if (!Number.isInteger(n))
      throw new Error(`${rows.length} numbers are not rows of ${this.nFeatures} features`);
    const size = n * width;
    return this.#with([rows.length * 8, size * Kind.BYTES_PER_ELEMENT, ROOM], ([x, out, error]) => {
      new Float64Array(this.#engine.memory.buffer, x, rows.length).set(rows);
      if (this.#engine[name](this.#model, x, BigInt(n), out, 1, error, ROOM))
        throw new Error(this.#text(error));
      return new Kind(this.#engine.memory.buffer, out, size).slice();
    });
  }

  /** What `work` makes of memory of these sizes, which is given back afterwards. */
  #with(sizes, work) {
    const places = [];
    try {
      for (const size of sizes) {
        const at = this.#engine.malloc(size + 1);
        if (!at) throw new Error(`there is no memory for ${size} bytes`);
        places.push(at);
      }
      return work(places);
    } finally {
      for (const at of places) this.#engine.free(at);
    }
  }

  #text(at) {
    const all = new Uint8Array(this.#engine.memory.buffer);
    return new TextDecoder().decode(all.subarray(at, all.indexOf(0, at)));
  }
}
