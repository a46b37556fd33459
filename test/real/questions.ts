/** Fifty short questions in English, with digits, code and other scripts. */
export const questions: readonly string[] = `What is the capital of France?
What is the capital of Japan?
Name three colours.
What is 12 + 7?
What is 2024 minus 24?
Write a sentence about the sea.
Who wrote Hamlet?
Translate "good morning" into Spanish.
What is the opposite of hot?
Give a synonym of big.
Write a Python function that adds two numbers.
What does HTML stand for?
How many days has a week?
Is the sun a star?
What do bees make?
Name a mammal that can fly.
What is the boiling point of water?
Write a haiku about rain.
What is the past tense of "go"?
Spell the word "necessary".
Who painted the Mona Lisa?
What is the largest planet?
List the first five prime numbers.
What is the square root of 81?
Complete: roses are red,
What language is spoken in Brazil?
What is H2O?
Why is the sky blue?
How do you say "thank you" in French?
What is a noun?
Count from 1 to 10.
What comes after Monday?
What is the speed of light?
Define gravity in one sentence.
What is 3 * 4 * 5?
Write a greeting for a letter.
Which animal says "moo"?
What is the currency of the United Kingdom?
Tell me a joke.
What is the first letter of the alphabet?
How many legs has a spider?
What is the plural of "mouse"?
Say hello in German.
What is machine learning?
Explain what a variable is.
for i in range(3): print(i)
What does "café" mean?
Übersetze: Guten Tag
¿Cómo estás?
Write the number 1234567 in words.`.split('\n');
