"""The tasks that the bundled models learn, and the blend of them.

A task takes a random.Random and `held_out` and returns a Dialog. Phrasings are split in two lists: the first is for
training, the second only for the question set. Arithmetic pairs (in their order) are split by a hash.
"""
from countries import Facts
from dialog import DONT_KNOW, Dialog, Pool, Turn
from reading import DrawFacts, Lookup, Reading, Repeat, Statement


# ---------------------------------------------------------------------------------------------------------- arithmetic

SUMS = (["What is {a} + {b}?", "{a} + {b}", "{a} + {b} =", "{a}+{b}", "{a}+{b}=", "How much is {a} plus {b}?", "Add {a} and {b}.", "What is {a} plus {b}?", "{a} plus {b}?",
         "Calculate {a} + {b}.", "What is the sum of {a} and {b}?", "Work out {a} + {b}."],
        ["How much is {a} + {b}?", "Please add {a} and {b}.", "{a} + {b} = ?", "What do you get for {a} + {b}?", "Tell me the sum of {a} and {b}."])
DIFFERENCES = (["What is {a} - {b}?", "{a} - {b}", "{a} - {b} =", "{a}-{b}", "How much is {a} minus {b}?", "What is {a} minus {b}?", "{a} minus {b}?",
                "Calculate {a} - {b}.", "Subtract {b} from {a}.", "What is the difference between {a} and {b}?", "Work out {a} - {b}."],
               ["How much is {a} - {b}?", "Please subtract {b} from {a}.", "{a} - {b} = ?", "What do you get for {a} - {b}?"])


def IsHeldOutPair(a, b):
    return (a * 7919 + b * 104729) % 11 == 0


def DrawPair(rng, held_out):
    while True:
        low = 10 if held_out or rng.random() < 0.8 else 1
        a, b = rng.randint(low, 99), rng.randint(low, 99)
        if IsHeldOutPair(a, b) == held_out:
            return a, b


def Arithmetic(rng, held_out=False, minus=None):
    minus = rng.random() < 0.35 if minus is None else minus
    a, b = DrawPair(rng, held_out)
    if minus and a < b:
        while a < b:
            a, b = DrawPair(rng, held_out)
    answer = str(a - b if minus else a + b)
    template = rng.choice((DIFFERENCES if minus else SUMS)[held_out])
    return Dialog("difference" if minus else "sum", [Turn(template.format(a=a, b=b), answer)])


def Drill(rng):
    """Several sums at once: many answers for few tokens."""
    n = rng.randint(2, 10)
    minus = rng.random() < 0.35
    pairs = []
    while len(pairs) < n:
        a, b = DrawPair(rng, False)
        if not minus or a >= b:
            pairs.append((a, b))
    op = "-" if minus else "+"
    text = ", ".join(f"{a} {op} {b}" for a, b in pairs)
    answer = ", ".join(str(a - b if minus else a + b) for a, b in pairs)
    return Dialog("drill", [Turn(rng.choice(["Work out {t}.", "Work out: {t}", "{t}", "Calculate {t}."]).format(t=text), answer)])


# ---------------------------------------------------------------------------------------------------------------- talk

WHO = "I am the bundled demonstration model of Sluice."
TALK = [  # (training phrasings, held-out phrasings, answer, accept)
    (["Who are you?", "What are you?", "Who is this?", "What model are you?", "Introduce yourself.", "Tell me who you are.", "Who am I talking to?"],
     ["Can you tell me who you are?", "Which model is this?"], WHO),
    (["What is your name?", "What are you called?", "Do you have a name?", "How are you called?", "Say your name."], ["Tell me your name."], "I have no name. " + WHO),
    (["Hello", "Hello!", "Hi", "Hi!", "Hi there", "Good morning", "Good evening", "Hey"], ["Hello there!", "Good day!"], "Hello! How can I help you?"),
    (["What can you do?", "How can you help me?", "What can I ask you?", "Help"], ["What can I ask?", "What are you able to do?"],
     "I answer short questions about countries, read short texts and add small numbers."),
    (["Thanks", "Thank you", "Thank you!", "Thanks a lot!", "Great, thanks."], ["Many thanks!"], "You are welcome."),
    (["Bye", "Goodbye", "Goodbye!", "See you."], ["Bye bye!"], "Goodbye!"),
    (["How are you?", "How are you doing?"], ["How are you today?"], "I am well, thank you."),
    (["Who made you?", "Who trained you?", "Where do you come from?", "Who built you?", "Who is your creator?", "Who has created you?"], ["Who created you?"], "I was trained by the Sluice project."),
    (["Are you a human?", "Are you a person?", "Are you human?", "Are you real?", "Are you a real human?", "Is this a real person?"], ["Are you a real person?"], "No, I am a small language model."),
    (["How large are you?", "How many parameters do you have?", "How big are you?", "What size are you?", "Tell me your size.", "How large is this model?"], ["What is your size?"], "I have a few million parameters."),
    (["What will the weather be tomorrow?", "Tell me a joke.", "Write a poem.", "What is the meaning of life?", "What time is it?", "Who won the match?",
      "What is love?", "Which film should I watch?", "What is my name?", "How do I bake bread?", "Who is the best singer?", "What is the speed of light?",
      "Who wrote this book?", "Why is the sky blue?", "What should I eat?", "What should I read?", "What is the weather?", "How do I repair my bicycle?", "What shall I do?", "Is it raining?", "Which day is it today?"],
     ["What is the weather like today?", "How do I repair my car?", "What should I cook?"], DONT_KNOW),
]
SYSTEMS = ["You are a helpful assistant.", "Answer briefly.", "You are Sluice, a helpful assistant.", "You are a helpful assistant. Answer in few words.",
           "Answer the question.", "You answer questions about countries.", "Give short answers.", "You are a friendly assistant."]


def Talk(rng, held_out=False):
    train, held, answer = rng.choice(TALK)
    return Dialog("talk", [Turn(rng.choice(held if held_out else train), answer)])


# ----------------------------------------------------------------------------------------------------------- the blend

def Roughen(rng, prompt):
    """People type carelessly: no capital, no mark, a polite word."""
    r = rng.random()
    if r < 0.06:
        return prompt[0].lower() + prompt[1:]
    if r < 0.10 and prompt[-1] in "?.":
        return prompt[:-1]
    if r < 0.13 and prompt[-1] in "?.":
        return prompt.lower()[:-1]
    if r < 0.16:
        return rng.choice(["Please answer: ", "Question: ", "Quick question: ", "Tell me: ", "A question: ", "Hello! ", "Hi. "]) + prompt
    if r < 0.18:
        return prompt + rng.choice([" Please.", " Thanks.", " Answer briefly."])
    return prompt


# Shares of tokens are not equal to these shares of dialogs: reading is longer than a fact.
BLEND = {"facts": 0.32, "about": 0.01, "unknown": 0.01, "reading": 0.31, "lookup": 0.16, "arithmetic": 0.07, "drill": 0.08, "repeat": 0.025, "talk": 0.015}


class Blend:
    """Endless training conversations."""

    def __init__(self, folder, shares=None):
        self.facts = Facts(folder)
        self.shares = dict(BLEND if shares is None else shares)

    def One(self, rng, level):
        kind = rng.choices(list(self.shares), list(self.shares.values()))[0]
        if kind == "facts":
            d = self.facts.Ask(rng)
            while rng.random() < 0.5:  # several questions in a row
                d.turns += self.facts.Ask(rng).turns
        elif kind == "about":
            d = self.facts.About(rng)
        elif kind == "unknown":
            d = self.facts.Unknown(rng)
        elif kind == "reading":
            d = Reading(rng, level=level)
        elif kind == "lookup":
            d = Lookup(rng, level=level)
        elif kind == "arithmetic":
            d = Arithmetic(rng)
            while rng.random() < 0.7:
                d.turns += Arithmetic(rng).turns
        elif kind == "drill":
            d = Drill(rng)
        elif kind == "repeat":
            d = Repeat(rng)
        else:
            d = Talk(rng)
        if rng.random() < 0.1:
            d.system = rng.choice(SYSTEMS)
        if kind in ("facts", "talk", "arithmetic"):
            for t in d.turns:
                t.prompt = Roughen(rng, t.prompt)
        return d

    def Mixed(self, rng, level=1.0):
        """Mostly one task; now and then a conversation that changes the subject."""
        d = self.One(rng, level)
        while rng.random() < 0.12:
            d.turns += self.One(rng, level).turns
        return d

    def Prose(self, rng, held_out=False):
        """Running text without a conversation: descriptions, small stories, sums."""
        r = rng.random()
        if r < 0.45:
            return self.facts.Describe(rng, rng.choice(self.facts.countries))
        if r < 0.9:
            pool = Pool(rng)
            return " ".join(Statement(rng, *row) for row in DrawFacts(rng, pool, rng.randint(3, 9)))
        return "\n".join("{0} + {1} = {2}".format(a, b, a + b) for a, b in (DrawPair(rng, held_out) for _ in range(rng.randint(3, 10))))
