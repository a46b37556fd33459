import re,os,sys
os.chdir(sys.argv[1])
def add(f,t):
    s=open(f).read(); open(f,'w').write(s.rstrip('\n')+'\n'+t)
B='src/base/'; E='src/engine/'
add(B+'host.ts',"""export type { FileLock } from './core/files.js';
export type { TrackerDefinition } from './core/tracker-declaration.js';
export { macrotask, nextMacrotask } from './platform/macrotask.js';
export { onAbort, unlessAborted } from './platform/on-abort.js';
""")
add(B+'events.ts',"export type { CheckpointEvent, EventStamp, PoolMeeting, Preparing } from './core/events.js';\n")
add(B+'math.ts',"export type { KeyPart } from './core/random.js';\n")
add(B+'nouns.ts',"export type { Issue } from './core/task.js';\n")
add(E+'contract.ts',"""export type { ValueLossSettings } from './contract/handles.js';
export type { OptimizerSettings, PartRates } from './contract/optimizer-settings.js';
export type { AgentAdapters } from './contract/weights-spec.js';
""")
add(E+'model.ts',"""export type { BaseKind, BlockFormats, Matrix } from './model/decoder/weights/decoder-tensors.js';
export type { ChoiceTableInput, LoraOptions, SavedAdapter, TinyDecoderSpec } from './model/model-spec.js';
""")
add(E+'tensor.ts',"""export type { BlockFormat } from './tensor/blocks.js';
export type { MatrixKind } from './tensor/kernel-arguments.js';
""")
add(E+'tokens.ts',"export type { BytesSpec, SymbolsSpec } from './model/tokenizers/tokenizer-spec.js';\n")
add(E+'loss.ts',"""export type { TokenNumbers } from './loss/aggregate.js';
export type {
  LossBatch,
  LossFacts,
  LossSchema,
  LossToken,
  ProtocolLoss,
  TokenLoss,
  TokenOutcome,
} from './loss/define-loss.js';
export type { EntropyResult } from './loss/entropy.js';
export type { KlKind } from './loss/kl.js';
export type { OwnLoss } from './loss/loss-spec.js';
export type { TokenRatios } from './loss/objective/objective-sums.js';
export type { PolicyLossInput, PolicyLossOptions, PolicyLossResult } from './loss/policy-loss.js';
export type { ValueLossGradient, ValueLossOptions } from './loss/value-loss.js';
""")
f=E+'backends.ts'; s=open(f).read()
st=re.findall(r"export (?:type )?\{.*?\} from '[^']+';\n",s,re.S)
heavy=[x for x in st if re.search(r"from '\./(devices|embedded)/",x)]
answers=[x for x in st if re.search(r"from '\./(endpoint|samplers)/|agent-reply|answered-tokens|server-access",x)]
light=[x for x in st if x not in heavy and x not in answers]
open(E+'endpoints.ts','w').write("/** Models behind endpoints and sampling servers: their settings, and checks of what they answer. */\n"+''.join(answers))
open(f,'w').write("/** Backends: how to declare one, and what helps to write one. */\n"+''.join(light)+"""export type { BackendDefinition, BackendPlan } from './backends/backend-declaration.js';
export { type LossGradient, lossGradient } from './backends/forward-backward.js';
export { ListPolicy } from './backends/list-policy.js';
""")
open(E+'runtime.ts','w').write("/** The embedded engine itself, which needs nothing of Node: its backend, and the link to its thread. */\n"+''.join(heavy))
heads={B+'disk.ts':'Sealed directories, content hashes and caches on disk.',B+'errors.ts':'The errors that drmas raises, and the validation that raises them.',
B+'events.ts':"The events of a run's log.",B+'host.ts':'The host of a run: clock, waiting, files, signals, listeners of a run, texts and secrets.',
B+'math.ts':'Random numbers and statistics.',B+'nouns.ts':'The nouns of the project: tasks, messages, turns, episodes, samples, tokenizers.',
B+'platform.ts':'The facilities of Node: files, threads, the cache directory, archives, web requests.',
E+'contract.ts':'The contract between a backend and the training loop: handles, capabilities, settings.',
E+'embedded.ts':'Backends at work in Node: the embedded engine with its thread and kernels, endpoints, sampling servers.',
E+'formats.ts':'Formats of models on disk, and downloads from a hub.',E+'loss.ts':'Policy losses, KL, entropy and value loss.',
E+'model.ts':'Descriptions of models and optimisers; the decoder.',E+'tensor.ts':'Kernels that need nothing of Node, and the types of devices.',
E+'tokens.ts':'Tokenizers and chat templates.',E+'tool-calls.ts':'The formats in which models write calls of tools, and their thinking.'}
for f,h in heads.items():
    s=open(f).read(); s=re.sub(r'\A/\*\*.*?\*/',f'/** {h} */',s,count=1,flags=re.S); open(f,'w').write(s)
f=E+'library/index.ts'; s=open(f).read()
s=s.replace('/** The names of `drmas/engine`:','/** The names of `@drmas/engine`, and of `drmas/engine`:',1); open(f,'w').write(s)
