/**
 * Simulates a run's schedule on a machine: when episodes wait for tools, when the sampler works, when policies learn,
 * and when new weights arrive. It is a pure function and plays nothing.
 *
 * The sampler is a batch that decodes without a break: an iteration gives each sequence in it one token and takes
 * `iterationSeconds + sequenceSeconds * n` for n sequences an engine. Reading a new prompt stops the batch. Rollouts
 * start by the rule of `rollout.staleness`.
 */

/** A call of a model in an episode. */
export interface ScheduledCall {
  /** The position of the call that it waits for in the same episode; absent for a first call. */
  readonly after?: number | undefined;
  /** Seconds between the end of that call, or the beginning of the episode, and this call: tools, the team's code. */
  readonly wait: number;
  readonly promptTokens: number;
  readonly responseTokens: number;
}

export interface ScheduledEpisode {
  /** In an order in which each call comes after the call that it waits for. */
  readonly calls: readonly ScheduledCall[];
  /** Seconds from the last call to the end of the episode: its reward. */
  readonly rest: number;
}

/** The speed of a machine. */
export interface MachineSpeed {
  readonly sampling: {
    readonly iterationSeconds: number;
    readonly sequenceSeconds: number;
    readonly promptTokenSeconds: number;
    /** Engines that share the calls evenly. */
    readonly engines: number;
  };
  readonly training: { readonly tokenSeconds: number; readonly updateSeconds: number };
  /** Seconds from an update until the sampler has its weights. */
  readonly transferSeconds: number;
  /** Whether sampler and trainer share processors. Then the sampler stops while a policy learns. */
  readonly shared: boolean;
}

export interface Schedule {
  /** The episodes of each step. */
  readonly steps: readonly (readonly ScheduledEpisode[])[];
  /** The most concurrent episodes of all steps together. */
  readonly atOnce: number;
  readonly staleness: number;
  /** Rollouts of later steps wait for a checkpoint. */
  readonly checkpointEvery: number;
  /** Tokens of prompts and responses that a step trains, for each token of its episodes: the epochs. */
  readonly epochs: number;
}

export interface SimulatedRun {
  readonly seconds: number;
  /** The time at which each step's weights had arrived. */
  readonly ends: readonly number[];
  /** Seconds in which the sampler worked, and seconds in which episodes were played without sampling. */
  readonly sampling: number;
  readonly waiting: number;
  readonly training: number;
  readonly transfer: number;
  /** Iterations of the sampler's batch. */
  readonly iterations: number;
}

/** An episode that is played. */
interface PlayingEpisode {
  readonly step: number;
  readonly episode: ScheduledEpisode;
  open: number;
}

export const tokensOf = (episodes: readonly ScheduledEpisode[]): number =>
  episodes.reduce(
    (sum, { calls }) => sum + calls.reduce((n, call) => n + call.promptTokens + call.responseTokens, 0),
    0,
  );

/** Seconds of a step's update. */
export function updateSeconds(machine: MachineSpeed, episodes: readonly ScheduledEpisode[], epochs: number): number {
  const { tokenSeconds, updateSeconds: fixed } = machine.training;
  return fixed + tokenSeconds * epochs * tokensOf(episodes);
}

/** Simulates all steps, from the first rollout until the last weights have arrived. */
export function simulateSchedule(schedule: Schedule, machine: MachineSpeed): SimulatedRun {
  return new Simulation(schedule, machine).run();
}

class Simulation {
  readonly #schedule: Schedule;
  readonly #machine: MachineSpeed;
  #now = 0;
  /** Iterations so far: the tokens of a sequence that has been in the batch from the start. */
  #iterations = 0;
  /** Seconds of prompts that still have to be read, on all engines together. */
  #unread = 0;
  #sampling = 0;
  #waiting = 0;
  #training = 0;
  readonly #timers = new EarliestFirst<() => void>();
  readonly #sequences = new EarliestFirst<() => void>();
  readonly #queue: PlayingEpisode[] = [];
  #next = 0;
  #playing = 0;
  readonly #left: number[];
  #begun = 0;
  #learnt = 0;
  #learning = false;
  readonly #ends: number[] = [];

  constructor(schedule: Schedule, machine: MachineSpeed) {
    this.#schedule = schedule;
    this.#machine = machine;
    this.#left = schedule.steps.map((episodes) => episodes.length);
  }

  run(): SimulatedRun {
    const { steps } = this.#schedule;
    this.#beginRollouts();
    while (this.#ends.length < steps.length) this.#advance();
    return {
      seconds: this.#now,
      ends: this.#ends,
      sampling: this.#sampling,
      waiting: this.#waiting,
      training: this.#training,
      transfer: this.#machine.transferSeconds * steps.length,
      iterations: this.#iterations,
    };
  }

  /** Advances to the next event. */
  #advance(): void {
    const engines = Math.min(this.#machine.sampling.engines, Math.max(1, this.#sequences.size)); // with work
    const paused = this.#machine.shared && this.#learning;
    const active = this.#sequences.size > 0 && !paused;
    const reading = this.#unread / engines;
    const iteration = this.#iterationSeconds();
    const ready = active
      ? this.#now + reading + (this.#sequences.earliest - this.#iterations) * iteration
      : Number.POSITIVE_INFINITY;
    const timer = this.#timers.size > 0 ? this.#timers.earliest : Number.POSITIVE_INFINITY;
    const until = Math.min(ready, timer);
    const passed = until - this.#now;
    if (active) {
      const read = Math.min(reading, passed);
      this.#unread = Math.max(0, this.#unread - read * engines);
      if (iteration > 0) this.#iterations += (passed - read) / iteration;
      this.#sampling += passed;
    } else if (this.#playing > 0) this.#waiting += passed;
    this.#now = until;
    if (ready <= timer) {
      this.#iterations = this.#sequences.earliest;
      this.#unread = 0;
      this.#sequences.take()();
    } else this.#timers.take()();
  }

  #iterationSeconds(): number {
    const { iterationSeconds, sequenceSeconds, engines } = this.#machine.sampling;
    return iterationSeconds + sequenceSeconds * Math.max(1, this.#sequences.size / engines);
  }

  #after(seconds: number, then: () => void): void {
    this.#timers.add(this.#now + seconds, then);
  }

  /** Starts the rollouts that may start after the updates of `#ends` steps. */
  #beginRollouts(): void {
    const { steps, staleness, checkpointEvery } = this.#schedule;
    const step = this.#ends.length + 1;
    const checkpoint = Math.ceil(step / checkpointEvery) * checkpointEvery;
    const last = Math.min(step + staleness, checkpoint, steps.length);
    for (; this.#begun < last; this.#begun++)
      for (const episode of steps[this.#begun] ?? [])
        this.#queue.push({ step: this.#begun, episode, open: episode.calls.length });
    this.#beginEpisodes();
    this.#learn();
  }

  #beginEpisodes(): void {
    while (this.#playing < this.#schedule.atOnce && this.#next < this.#queue.length) {
      const playing = this.#queue[this.#next++] as PlayingEpisode;
      this.#playing++;
      if (playing.open === 0) this.#after(playing.episode.rest, () => this.#endEpisode(playing));
      else this.#beginCalls(playing, undefined);
    }
  }

  /** Starts the calls that waited for this one. */
  #beginCalls(playing: PlayingEpisode, ended: number | undefined): void {
    playing.episode.calls.forEach((call, position) => {
      if (call.after === ended) this.#after(call.wait, () => this.#sample(playing, position, call));
    });
  }

  #sample(playing: PlayingEpisode, position: number, call: ScheduledCall): void {
    this.#unread += call.promptTokens * this.#machine.sampling.promptTokenSeconds;
    this.#sequences.add(this.#iterations + call.responseTokens, () => {
      playing.open--;
      this.#beginCalls(playing, position);
      if (playing.open === 0) this.#after(playing.episode.rest, () => this.#endEpisode(playing));
    });
  }

  #endEpisode({ step }: PlayingEpisode): void {
    this.#playing--;
    this.#left[step] = (this.#left[step] ?? 0) - 1;
    this.#beginEpisodes();
    this.#learn();
  }

  /** Learns from the next step if it is played and the previous update is done. */
  #learn(): void {
    const step = this.#learnt;
    const episodes = this.#schedule.steps[step];
    const ready = this.#ends.length === step && this.#begun > step && this.#left[step] === 0;
    if (episodes === undefined || this.#learning || !ready) return;
    const seconds = updateSeconds(this.#machine, episodes, this.#schedule.epochs);
    this.#learning = true;
    this.#after(seconds, () => {
      this.#learning = false;
      this.#learnt++;
      this.#training += seconds;
      this.#after(this.#machine.transferSeconds, () => {
        this.#ends.push(this.#now);
        this.#beginRollouts();
      });
    });
  }
}

/**
 * Seconds of an episode that is played alone, from its first call to its end.
 * @param readers Engines that read one prompt together
 */
export function aloneSeconds({ calls, rest }: ScheduledEpisode, { sampling }: MachineSpeed, readers = 1): number {
  const { iterationSeconds, sequenceSeconds, promptTokenSeconds } = sampling;
  const ends: number[] = [];
  for (const { after, wait, promptTokens, responseTokens } of calls) {
    const began = after === undefined ? 0 : (ends[after] ?? 0);
    const read = (promptTokens * promptTokenSeconds) / readers;
    ends.push(began + wait + read + responseTokens * (iterationSeconds + sequenceSeconds));
  }
  return Math.max(0, ...ends) + rest;
}

/** Items by due time, the earliest first. Among equal times the first added comes first. */
class EarliestFirst<Item> {
  readonly #heap: { readonly due: number; readonly order: number; readonly item: Item }[] = [];
  #added = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** The due time of the first item; infinity if there is none. */
  get earliest(): number {
    return this.#heap[0]?.due ?? Number.POSITIVE_INFINITY;
  }

  add(due: number, item: Item): void {
    this.#heap.push({ due, order: this.#added++, item });
    for (let at = this.#heap.length - 1; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (!this.#isBefore(at, parent)) return;
      this.#swap(at, parent);
      at = parent;
    }
  }

  /** Removes and returns the first item. @throws RangeError if there is none */
  take(): Item {
    const first = this.#heap[0];
    if (first === undefined) throw new RangeError('there is nothing to take');
    this.#swap(0, this.#heap.length - 1);
    this.#heap.pop();
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      let least = at;
      if (left < this.size && this.#isBefore(left, least)) least = left;
      if (right < this.size && this.#isBefore(right, least)) least = right;
      if (least === at) return first.item;
      this.#swap(at, least);
      at = least;
    }
  }

  #isBefore(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (one === undefined || other === undefined) return false;
    return one.due < other.due || (one.due === other.due && one.order < other.order);
  }

  #swap(a: number, b: number): void {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (one === undefined || other === undefined) return;
    this.#heap[a] = other;
    this.#heap[b] = one;
  }
}
