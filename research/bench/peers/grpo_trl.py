"""The same step in TRL's GRPOTrainer with Hugging Face generate: float32, no KL, no checkpointing of activations."""
import os
import tempfile
import time
import warnings

import torch
import transformers
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
import trl

from calculator import Calculator
from serve import serve, settings

s = settings()
warnings.filterwarnings('ignore')
transformers.utils.logging.set_verbosity_error()
torch.set_num_threads(s['threads'])
task_family = Calculator(s['symbols'])
tasks = [task for step in s['tasks'] for task in step]
rows = len(s['tasks'][0]) * s['group']

words = Tokenizer(models.WordLevel(task_family.ids, unk_token=task_family.symbols[0]))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token=task_family.symbols[0],
                                    eos_token=task_family.symbols[task_family.stop], padding_side='left')
dataset = Dataset.from_list([dict(prompt=' '.join(task_family.prompt_symbols(task)), answer=task['answer']) for task in tasks])


def reward(completion_ids, answer, **_):
    return [task_family.reward(list(completion), right) for completion, right in zip(completion_ids, answer)]


class Watched(GRPOTrainer):
    """Counts tokens and seconds of generating; the rest of the step is the trainer's own."""
    generating, sampled = 0.0, 0

    def _generate_single_turn(self, *args, **kwargs):
        start = time.perf_counter()
        out = super()._generate_single_turn(*args, **kwargs)
        self.generating, self.sampled = time.perf_counter() - start, sum(map(len, out[0]))
        return out


class Steps(TrainerCallback):
    def __init__(self):
        self.taken, self.trainer = [], None

    def on_train_begin(self, *_, **__):
        self.start = time.perf_counter()

    def on_step_end(self, *_, **__):
        now = time.perf_counter()
        self.taken.append(dict(seconds=now - self.start, rollout=self.trainer.generating, tokens=self.trainer.sampled))
        self.start = time.perf_counter()


def repeat():
    model = AutoModelForCausalLM.from_pretrained(s['weights'], attn_implementation='sdpa', dtype='float32')
    model.config.pad_token_id = model.generation_config.pad_token_id = 0
    model.config.eos_token_id = model.generation_config.eos_token_id = task_family.stop
    steps = Steps()
    with tempfile.TemporaryDirectory() as directory:
        config = GRPOConfig(
            output_dir=directory, use_cpu=True, bf16=False, fp16=False, gradient_checkpointing=False,
            per_device_train_batch_size=rows, gradient_accumulation_steps=1, num_generations=s['group'],
            max_completion_length=s['maxTokens'], temperature=1.0, top_p=1.0, top_k=0, beta=0.0, epsilon=0.2,
            loss_type='dapo', scale_rewards='group', learning_rate=s['learningRate'],
            lr_scheduler_type='constant_with_warmup', warmup_steps=5, adam_beta1=0.9, adam_beta2=0.99, weight_decay=0.0,
            max_grad_norm=1.0, optim='adamw_torch_fused', max_steps=len(s['tasks']), logging_steps=1, save_strategy='no',
            eval_strategy='no', report_to='none', disable_tqdm=True, dataloader_pin_memory=False, shuffle_dataset=False,
            **(dict(cache_implementation='static') if s['cache'] == 'static' else {}),
        )
        trainer = Watched(model=model, reward_funcs=reward, args=config, train_dataset=dataset, processing_class=tokenizer,
                          callbacks=[steps])
        steps.trainer = trainer
        trainer.remove_callback(transformers.PrinterCallback)
        torch.set_num_threads(s['threads'])
        trainer.train()
    rewards = sorted(entry['reward'] for entry in trainer.state.log_history if 'reward' in entry)
    middle = lambda key, taken=steps.taken[s['warm']:]: sorted(one[key] for one in taken)[len(taken) // 2]
    return {'amount': 1, 'seconds': middle('seconds'), 'ms rollout': 1e3 * middle('rollout'),
            'tokens sampled': middle('tokens'), 'reward': rewards[len(rewards) // 2],
            'ms step 4 to 23': 1e3 * middle('seconds', steps.taken[slice(*s['early'])])}


os.environ['ACCELERATE_TORCH_DEVICE'] = 'cpu'
serve(dict(torch=torch.__version__, transformers=transformers.__version__, trl=trl.__version__), repeat)
