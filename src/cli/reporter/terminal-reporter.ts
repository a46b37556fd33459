import { existsSync } from 'node:fs';
import { rivalOf } from '../../advantage/estimators/index.js';
import type { MetricSink, RunEvent, Spike, Step, Warmup } from '../../core/events.js';
import type { PlayProgress } from '../../core/play/play-observer.js';
import { nodeFiles } from '../../platform/node-files.js';
import type { Recipe } from '../../recipe/recipe.js';
import { readEpisodes } from '../../store/episode-files.js';
import { choosePair, pairLines } from './conversation-printer.js';
import {
  evaluationLine,
  failureLines,
  measureLines,
  playLine,
  secondsLeft,
  spikeLine,
  stepLegend,
  stepLines,
  warmupLine,
} from './progress-printer.js';
import { emptyHistory, type History, remember } from './run-history.js';
import { type Screen, tone } from './screen.js';
import { startLines } from './start-printer.js';
import { StatusLines } from './status-lines.js';
import { nextLines, secondsOf, summaryLines } from './summary-printer.js';
import { nearPath, wrap } from './text-layout.js';

/** The run that is reported. */
export interface ReportedRun {
  readonly path: string;
  stepEpisodesPath(step: number): string;
  evaluationEpisodesPath(step: number): string;
}

/** Tells a person on a terminal, or in a log file, what a run does. Everything it says comes from the run's events. */
export class TerminalReporter implements MetricSink {
  readonly #screen: Screen;
  readonly #recipe: Recipe;
  /** What to type to ask for the same recipe. */
  readonly #request: string;
  readonly #runPath: string;
  #history: History = emptyHistory;
  readonly #lines: StatusLines;
  #held: Step | undefined;
  #secondsOfRun = 0;
  /** The flags to type again where the run goes on. */
  readonly #flags: readonly string[];
  /** The seconds of what was done before the run was interrupted. */
  #secondsBefore = 0;

  constructor(
    screen: Screen,
    recipe: Recipe,
    options: { request: string; runPath: string; flags?: readonly string[] },
  ) {
    this.#screen = screen;
    this.#lines = new StatusLines(screen);
    this.#recipe = recipe;
    this.#request = options.request;
    this.#flags = options.flags ?? [];
    this.#runPath = nearPath(options.runPath);
  }

  /** Adds what happened before a run was interrupted to the history, and says only where the run goes on. */
  resume(events: readonly RunEvent[]): void {
    for (const event of events) this.#history = remember(this.#history, event);
    this.#secondsBefore = secondsOf(this.#history);
    const { started, steps } = this.#history;
    if (started !== undefined) this.#say(...startLines(this.#recipe, started, this.#runPath, this.#screen.width), '');
    this.#say(`resuming after step ${steps.at(-1)?.step ?? 0}`);
  }

  /** Says something that is no event, such as that the warm start comes from the cache. */
  notify(message: string): void {
    this.#say(...wrap(message, this.#screen.width));
  }

  write(event: RunEvent): void {
    const ofHeldStep = event.type === 'spike' || event.type === 'skipped';
    if (!ofHeldStep) this.#sayHeldStep();
    this.#history = remember(this.#history, event);
    const { width } = this.#screen;
    switch (event.type) {
      case 'run.started':
        this.#start(event);
        break;
      case 'warmup':
        this.#lines.progress(this.#warmupLine(event), 'stays');
        break;
      case 'evaluation':
        this.#say(tone(this.#screen, 'bold', evaluationLine(event, width)), ...measureLines(event, width));
        if (event.step === 0) this.#say(...wrap(stepLegend(Object.keys(event.agents)), width));
        break;
      case 'step': // spikes of the step follow it at once, and its line marks them
        this.#held = event;
        queueMicrotask(() => this.#sayHeldStep());
        break;
      case 'spike':
      case 'skipped':
        if (this.#held === undefined) this.#say(this.#spikeLine(event));
        break;
      case 'warning':
        this.#say(...wrap(`warning: ${event.message}`, width).map((line) => tone(this.#screen, 'yellow', line)));
        break;
      case 'run.finished':
        this.#secondsOfRun = this.#secondsBefore + event.seconds;
        this.#say(); // what ended the run may have something to say below
        break;
      case 'episode.failed': // step lines and the report at the end count the others
        if (this.#history.failures[event.reason] === 1) this.#say(...failureLines(event, width));
        break;
      case 'checkpoint':
        break;
    }
  }

  /** Shows how many episodes of a step or an evaluation are over, now and then and on a terminal alone. */
  progress(progress: PlayProgress): void {
    const next = (this.#history.steps.at(-1)?.step ?? 0) + 1;
    if (progress.phase === 'training' && progress.step > next) return; // played ahead, and told when its turn comes
    this.#sayHeldStep();
    this.#lines.passing(() => playLine(progress, this.#recipe.training.steps, this.#screen.width));
  }

  /** Writes the report at the end of a run. @throws RunError when an episode file is damaged */
  async finish(run: ReportedRun): Promise<void> {
    const { width } = this.#screen;
    this.#say('', ...summaryLines(this.#history, this.#secondsOfRun, width), '');
    const pair = await this.#pair(run);
    if (pair !== undefined) this.#say(...pairLines(pair, width), '');
    this.#say(`the run lies in ${this.#runPath}`);
    const { seed, advantage } = this.#recipe;
    this.#say(...nextLines(this.#request, this.#runPath, seed, rivalOf(advantage)));
  }

  /** Writes how to go on with an interrupted run. */
  interrupted(): void {
    const { started, warmups, steps, evaluations } = this.#history;
    if (started === undefined && steps.length === 0) {
      this.#say('', 'interrupted before the run began: what was downloaded stays, type the same command again');
      return;
    }
    this.#say('', `interrupted; go on with: ${this.#resumption()}`);
    if (warmups.length > 0 && steps.length === 0 && evaluations.length === 0)
      this.notify('The warm start was not over: it begins again, since only a whole one is kept.');
  }

  /** Writes how to go on with a run that failed, once there is a checkpoint to go on from. */
  failed(): void {
    const { checkpoint } = this.#history;
    if (checkpoint === undefined) return;
    const way = `failed; once its cause is gone, go on from the checkpoint of step ${checkpoint} with:`;
    this.#say('', ...wrap(way, this.#screen.width), `  ${this.#resumption()}`, '');
  }

  #resumption(): string {
    return `npx drmas resume ${[this.#runPath, ...this.#flags].join(' ')}`;
  }

  #start(event: Extract<RunEvent, { type: 'run.started' }>): void {
    this.#say(...startLines(this.#recipe, event, this.#runPath, this.#screen.width), '');
  }

  #warmupLine(event: Warmup): string {
    const ofPolicy = this.#history.warmups.filter(({ policy }) => policy === event.policy);
    return warmupLine(event, ofPolicy.at(-2)?.step ?? 0, this.#screen.width);
  }

  #sayHeldStep(): void {
    if (this.#held !== undefined) this.#say();
  }

  #stepLines(event: Step): string[] {
    const { training, evaluation } = this.#recipe;
    const spikes = this.#history.spikes.filter((spike) => spike.step === event.step);
    const spiking = new Set(spikes.map((spike) => spike.agent ?? spike.policy));
    const left = secondsLeft(this.#history, training.steps, evaluation.every);
    const lines = stepLines(event, training.steps, spiking, left, this.#screen.width);
    return [...lines, ...spikes.map((spike) => this.#spikeLine(spike))];
  }

  #spikeLine(spike: Spike): string {
    return tone(this.#screen, 'yellow', spikeLine(spike, this.#screen.width));
  }

  async #pair(run: ReportedRun) {
    const [first, last] = [this.#history.evaluations[0], this.#history.evaluations.at(-1)];
    if (first === undefined || last === undefined || first === last) return undefined;
    const [before, after] = [run.evaluationEpisodesPath(first.step), run.evaluationEpisodesPath(last.step)];
    if (!existsSync(before) || !existsSync(after)) return undefined;
    return choosePair(await readEpisodes(nodeFiles, before), await readEpisodes(nodeFiles, after));
  }

  /** Writes lines that stay. A step that was held back comes first. */
  #say(...lines: string[]): void {
    const step = this.#held;
    this.#held = undefined;
    this.#lines.say(...(step ? this.#stepLines(step) : []), ...lines);
  }
}
