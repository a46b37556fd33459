/**
 * The search experiment of the Dr. MAS paper (arXiv 2602.08847) with its settings, from its text and its code at
 * 19c632b: a verifier, a searcher and an answerer on Qwen2.5-3B, trained whole on NQ and HotpotQA and evaluated on
 * seven sets of questions. Passages come from a server of Search-R1's protocol, at SEARCH_R1_URL, else at
 * http://127.0.0.1:8000. docs/the-paper.md lists the differences and the necessary downloads, and has the command of
 * the paper's heterogeneous team.
 *
 *     drmas plan paper-search
 *     drmas train paper-search --set assign=shared
 */
import { checkpoint, defineRecipe, file, searchTeam } from 'drmas';
import { searchR1Retriever } from 'drmas/tasks';

const agents = { sampling: { maxTokens: 800 }, promptLimit: { tokens: 4096, cut: 'left' as const } };
const policy = {
  optimizer: { learningRate: 1e-6, beta1: 0.9, beta2: 0.999, weightDecay: 0.01 },
  warmupSteps: 0,
  clipNorm: 1,
  miniBatches: 5,
  entropyCoefficient: 0.001,
};

export default defineRecipe({
  // The original's rules and prompts, held to transcripts of its code.
  team: searchTeam({
    form: 'paper',
    prompts: 'paper',
    retriever: searchR1Retriever({ url: process.env.SEARCH_R1_URL ?? 'http://127.0.0.1:8000' }),
    maxTurns: 4,
    topk: 3,
    invalidPenalty: 0.01,
  }),
  tasks: {
    train: file('data/nq-hotpotqa-train.parquet', { origin: 'PeterJinGo/nq_hotpotqa_train:train' }),
    test: {
      nq: file('data/nq.jsonl', { origin: 'RUC-NLPIR/FlashRAG_datasets/nq:test' }),
      triviaqa: file('data/triviaqa.jsonl', { origin: 'RUC-NLPIR/FlashRAG_datasets/triviaqa:test' }),
      popqa: file('data/popqa.jsonl', { origin: 'RUC-NLPIR/FlashRAG_datasets/popqa:test' }),
      hotpotqa: file('data/hotpotqa.jsonl', { origin: 'RUC-NLPIR/FlashRAG_datasets/hotpotqa:dev' }),
      '2wikimultihopqa': file('data/2wikimultihopqa.jsonl', {
        origin: 'RUC-NLPIR/FlashRAG_datasets/2wikimultihopqa:dev',
      }),
      musique: file('data/musique.jsonl', { origin: 'RUC-NLPIR/FlashRAG_datasets/musique:dev' }),
      bamboogle: file('data/bamboogle.jsonl', { origin: 'RUC-NLPIR/FlashRAG_datasets/bamboogle:test' }),
    },
  },
  model: checkpoint('Qwen/Qwen2.5-3B'),
  agents: { verifier: agents, searcher: agents, answerer: agents },
  policies: { verifier: policy, searcher: policy, answerer: policy },
  advantage: { type: 'drmas', singleton: 'raw', minimumSpread: 0 },
  loss: { type: 'ppo-clip', clip: 0.2, dualClip: 3 },
  // The original counts one epoch of its questions; the number of steps is this recipe's.
  training: { steps: 200, tasksPerStep: 128, groupSize: 5, failedEpisodes: 'zero', checkpointEvery: 10 },
  // Thirty questions of each set, as in the original's validation; `drmas evaluate --tasks 100000` plays all.
  evaluation: {
    every: 5,
    tasks: 30,
    samples: 16,
    samplesDuring: 1,
    sampling: { temperature: 0.6, topP: 0.95 },
  },
});
