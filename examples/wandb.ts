/**
 * A run in Weights & Biases. The package `wandb` writes its own files and speaks its own protocol, so a tracker passes
 * the run's events to a few lines of Python (`pip install wandb`):
 *
 *     WANDB_MODE=offline npx drmas train examples/wandb.ts    # nothing leaves the machine
 *     wandb sync wandb/offline-run-*                          # sends the run later
 *
 * The charts are named `train.reward.mean` or `evaluation.averageAtK`. WANDB_PYTHON names another interpreter than
 * `python3`. A resumed run continues under its name, and sends the steps again that it plays again.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { defineRecipe } from 'drmas';
import { defineTracker } from 'drmas/events';
import repair from '../recipes/repair/recipe.js';

const SIDE = `
import json, sys, wandb

name, project = sys.argv[1:3]
groups = {"step": "train", "evaluation": "evaluation", "warmup": "warmup"}
with wandb.init(project=project, name=name, id=name, resume="allow") as run:
    run.define_metric("*", step_metric="step")
    print("ready", flush=True)
    for line in sys.stdin:
        event = json.loads(line)
        if event["type"] in groups:
            run.log({groups[event["type"]]: event, "step": event["step"]})
`;

export const wandb = defineTracker({
  name: 'wandb',
  async open({ name, recipe, environment }) {
    const python = environment.WANDB_PYTHON ?? 'python3';
    const program = spawn(python, ['-c', SIDE, name, recipe], { stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = once(program, 'close').then(([code]) => {
      if (code !== 0) throw new Error(`the lines of Python for wandb ended with ${code}`);
    });
    ended.catch(() => {}); // `open` or `close` reports it
    program.stdin.on('error', () => {});
    const begun = once(createInterface({ input: program.stdout }), 'line');
    await Promise.race([begun, ended]); // fails before anything is played, for instance without the package
    return {
      name: 'wandb',
      event: (event) => void program.stdin.write(`${JSON.stringify(event)}\n`),
      async close() {
        program.stdin.end();
        await ended;
      },
    };
  },
});

export default defineRecipe({ ...repair.input, use: [wandb] });
