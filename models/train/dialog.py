"""What a conversation is made of: turns, and things with invented names to talk about.

Invented names are drawn afresh each time, so that reading cannot be done from memory.
"""
from dataclasses import dataclass, field

DONT_KNOW = "I don't know."


@dataclass
class Turn:
    prompt: str
    answer: str
    accept: list = field(default_factory=list)


@dataclass
class Dialog:
    kind: str
    turns: list
    system: str = None


def Join(items):
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def Capitalised(text):
    return text[0].upper() + text[1:]


SYLLABLES = [a + b + c for a in ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z")
             for b, c in (("a", "r"), ("a", "n"), ("e", "l"), ("e", "k"), ("i", "n"), ("i", "s"), ("o", "r"), ("o", "n"), ("u", "l"), ("u", "m"))]
FIRST_NAMES = ("Ana Ben Clara David Emma Felix Greta Hugo Ivan Julia Karl Lena Marco Nina Oscar Paula Rosa Simon Tara Victor "
               "Alice Bruno Dora Erik Fiona Georg Hanna Ida Jonas Kira Leo Mia Noah Olga Peter Rita Sara Tom Ulla Vera Will Yara Zoe "
               "Adam Bella Carl Diana Eva Frank Gina Henry Iris Jack Kate Lucas Maria Nora Otto Pia Ralf Sofia Theo Anton").split()
COLOURS = "red blue green yellow black white brown grey purple pink silver golden".split()
OBJECTS = ("boat car hat bag lamp book chair table clock ring coat cup drum flute kite knife ladder mirror pen radio rope shoe "
           "spoon tent violin wagon watch bell basket bottle bicycle camera carpet guitar hammer jacket piano scarf umbrella vase").split()
PLACES = ("kitchen cellar garden attic garage library school station market harbour church museum theatre hotel castle tower bakery "
          "hospital barn mill office park bridge shop square palace stable workshop cave forest").split()
JOBS = ("baker teacher doctor farmer painter sailor singer nurse pilot cook judge writer miller tailor driver hunter gardener "
        "lawyer dancer fisher potter smith barber guard clerk").split()
FOODS = "bread cheese soup rice fish apples grapes honey cake eggs nuts pears beans plums salad pasta butter cherries olives carrots".split()
ANIMALS = "goats cows hens dogs cats horses sheep ducks pigs geese rabbits donkeys bees doves".split()
EVENTS = "concert lesson meeting market film play party dinner race match show fair wedding train ferry bus".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
VEHICLES = "train boat bus car bicycle ship plane ferry horse sledge".split()
ROLES = "mayor king queen captain priest head president owner".split()
MATERIALS = "wood stone iron glass paper wool clay leather silk copper".split()


def InventedName(rng):
    n = 2 if rng.random() < 0.75 else 3
    return "".join(rng.choice(SYLLABLES) for _ in range(n)).capitalize()


class Pool:
    """Things without repeats, so that a question has one answer."""

    def __init__(self, rng):
        self.rng, self.used = rng, set()

    def Pick(self, options):
        for _ in range(50):
            v = self.rng.choice(options)
            if v not in self.used:
                self.used.add(v)
                return v
        return v

    def Person(self):
        if self.rng.random() < 0.4:
            return self.Pick(FIRST_NAMES)
        return self.Town()

    def Town(self):
        for _ in range(50):
            v = InventedName(self.rng)
            if v not in self.used:
                break
        self.used.add(v)
        return v

    def Number(self, low, high):
        for _ in range(50):
            v = str(self.rng.randint(low, high))
            if v not in self.used:
                break
        self.used.add(v)
        return v

    def Thing(self):
        return self.Pick(COLOURS_OBJECTS)


COLOURS_OBJECTS = [f"{c} {o}" for c in COLOURS for o in OBJECTS]


def The(x):
    return "the " + x, [x, "a " + x]


def Plain(x):
    return x, []


def A(x):
    return ("an " if x[0] in "aeiou" else "a ") + x, [x, "the " + x]
