"""Decoding with vLLM: random weights in bfloat16, all requests submitted at once."""
import time

from serve import qwen2_config, serve, settings


def main():
    import vllm
    s = settings()
    requests = s['requests']
    config = qwen2_config(s['shape'], s['context'])
    config.architectures = ['Qwen2ForCausalLM']
    config.save_pretrained(s['directory'])
    # Others hold their weights on the GPU, too.
    model = vllm.LLM(s['directory'], load_format='dummy', skip_tokenizer_init=True, dtype='bfloat16',
                     max_model_len=s['context'], enable_prefix_caching=False, gpu_memory_utilization=0.5)

    def generate(chosen):
        prompts = [dict(prompt_token_ids=request['prompt']) for request in chosen]
        sampling = [vllm.SamplingParams(temperature=1.0, max_tokens=request['length'], min_tokens=request['length'],
                                        ignore_eos=True, detokenize=False) for request in chosen]
        model.generate(prompts, sampling, use_tqdm=False)

    def repeat():
        start = time.perf_counter()
        generate(requests)
        return dict(amount=sum(request['length'] for request in requests), seconds=time.perf_counter() - start)

    generate([dict(request, length=2) for request in requests[:4]])
    serve(dict(vllm=vllm.__version__), repeat)


if __name__ == '__main__':  # vLLM starts processes that import this file
    main()
