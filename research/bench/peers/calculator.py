"""The calculator task for the Python peers: the words of the model, prompts and the reward."""
import re


class Calculator:
    def __init__(self, symbols):
        self.symbols = symbols['all']
        self.ids = {symbol: i for i, symbol in enumerate(self.symbols)}
        self.agent, self.end_of_user = symbols['agent'], symbols['endOfUser']
        self.stop = self.ids[symbols['stop']]

    def prompt_symbols(self, task):
        return [self.agent, *task['question'], self.end_of_user]

    def prompt(self, task):
        return [self.ids[symbol] for symbol in self.prompt_symbols(task)]

    def reward(self, response, answer):
        """1 where the last boxed number is right. `response` are token ids."""
        text = ''.join(self.symbols[token] for token in response)
        boxed = re.findall(r'\\boxed\{(\d+)\}', text)
        return float(bool(boxed) and int(boxed[-1]) == int(answer))
