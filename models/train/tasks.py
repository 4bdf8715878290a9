"""The tasks that the bundled models learn, as short conversations.

A task generator takes a random.Random and `held_out` and returns a Dialog. Phrasings are split in two lists: the
first is for training, the second only for the question set. Arithmetic pairs are split by a hash. Invented names are
drawn afresh each time, so that reading cannot be done from memory.
"""
from dataclasses import dataclass, field

import facts as facts_source

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


# ---------------------------------------------------------------------------------------------------------------- facts

# kind: (share, training phrasings, held-out phrasings). {c} is the country as said, {x} a second thing.
FACTS = {
    "capital": (2.0, [
        "What is the capital of {c}?", "What is {c}'s capital?", "Which city is the capital of {c}?", "Name the capital of {c}.",
        "Capital of {c}?", "Tell me the capital of {c}.", "What's the capital city of {c}?", "{C}: capital?",
        "What is the name of the capital of {c}?", "The capital of {c} is", "Where is the government of {c} seated?",
        "Which city is {c}'s capital?", "Give me the capital of {c}.", "Can you name the capital of {c}?", "What city is the capital of {c}?",
    ], ["Do you know the capital of {c}?", "Please name the capital city of {c}.", "Which city serves as the capital of {c}?",
        "I forgot the capital of {c}. What is it?", "What is the capital city called in {c}?"]),
    "capital_of": (2.0, [
        "{x} is the capital of which country?", "Which country has {x} as its capital?", "What country is {x} the capital of?",
        "{x} is the capital of", "Which country's capital is {x}?", "Whose capital is {x}?", "Name the country whose capital is {x}.",
        "In which country is {x} the capital?", "{x}: capital of which country?", "Tell me which country has the capital {x}.",
    ], ["Of which country is {x} the capital?", "The city of {x} is the capital of what country?", "What is the country whose capital city is {x}?"]),
    "region": (1.0, [
        "In which part of the world is {c}?", "Where is {c}?", "Which region is {c} in?", "Where is {c} located?",
        "On which continent is {c}?", "What region does {c} belong to?", "{C}: region?", "In what region does {c} lie?",
        "Tell me where {c} is.", "What part of the world is {c} in?", "Where does {c} lie?",
    ], ["Where in the world is {c}?", "In which region can {c} be found?", "Where can I find {c} on the map?"]),
    "neighbours": (4.0, [
        "Which countries border {c}?", "What are the neighbours of {c}?", "Name the neighbours of {c}.", "List the countries that border {c}.",
        "Who are {c}'s neighbours?", "Which countries does {c} border?", "What countries share a border with {c}?",
        "{C}: neighbours?", "With which countries does {c} share a border?", "Tell me the neighbours of {c}.",
        "List the neighbours of {c}.", "Which countries are next to {c}?", "What are the neighbouring countries of {c}?",
    ], ["Which countries are neighbours of {c}?", "Name the countries that border {c}.", "What countries does {c} border?",
        "Please list the neighbours of {c}."]),
    "border": (2.0, [
        "Does {c} border {x}?", "Is {c} next to {x}?", "Do {c} and {x} share a border?", "Is {x} a neighbour of {c}?",
        "Does {c} share a border with {x}?", "Are {c} and {x} neighbours?", "Is there a border between {c} and {x}?",
        "Does {c} touch {x}?",
    ], ["Do {c} and {x} border each other?", "Is {c} a neighbour of {x}?", "Does {c} have a border with {x}?"]),
    "language": (2.0, [
        "What language is spoken in {c}?", "What are the official languages of {c}?", "Which language do people speak in {c}?",
        "What is the official language of {c}?", "What do people speak in {c}?", "{C}: language?", "Which languages are spoken in {c}?",
        "Name the official language of {c}.", "What language do they speak in {c}?", "Language of {c}?", "Tell me the language of {c}.",
        "What is the language of {c}?",
    ], ["Which language is official in {c}?", "What languages are used in {c}?", "What language is used in {c}?", "Which language would I hear in {c}?"]),
    "currency": (2.0, [
        "What is the currency of {c}?", "What money is used in {c}?", "Which currency does {c} use?", "What currency is used in {c}?",
        "Name the currency of {c}.", "{C}: currency?", "What do people pay with in {c}?", "What is {c}'s currency?",
        "Currency of {c}?", "Tell me the currency of {c}.", "Which money do they use in {c}?", "What is the money of {c} called?",
    ], ["Which currency is used in {c}?", "What currency do people use in {c}?", "How do people pay in {c}?", "What kind of money does {c} use?"]),
    "currency_code": (1.0, [
        "What is the currency code of {c}?", "Which currency code does {c} use?", "Give the three-letter currency code of {c}.",
        "{C}: currency code?", "Currency code of {c}?", "What is the code of the currency of {c}?", "Name the currency code of {c}.",
        "What is {c}'s currency code?",
    ], ["Which code does the currency of {c} have?", "What is the three-letter code for the currency of {c}?"]),
    "area": (4.5, [
        "What is the area of {c}?", "How large is {c}?", "How many square kilometres does {c} cover?", "What is {c}'s area?",
        "How big is {c}?", "{C}: area?", "Tell me the area of {c}.", "What area does {c} cover?", "Area of {c}?",
        "How big is the area of {c}?", "Give the area of {c} in square kilometres.", "How much land does {c} cover?",
        "What is the size of {c}?", "How large is {c} in square kilometres?",
    ], ["What is the total area of {c}?", "How big is {c} in square kilometres?", "How large is the area of {c}?", "What size is {c}?"]),
    "coastline": (4.0, [
        "How long is the coastline of {c}?", "How long is {c}'s coast?", "What is the length of the coastline of {c}?",
        "How many kilometres of coast does {c} have?", "{C}: coastline?", "What is the length of {c}'s coastline?",
        "Coastline of {c}?", "Tell me the length of the coast of {c}.", "How long is the coast of {c}?", "How much coastline does {c} have?",
    ], ["What length is the coastline of {c}?", "How many kilometres long is the coast of {c}?", "How long a coastline does {c} have?"]),
    "landlocked": (1.0, [
        "Is {c} landlocked?", "Does {c} have a coast?", "Does {c} have access to the sea?", "Is {c} by the sea?",
        "Is {c} a landlocked country?", "Does {c} lie on the sea?", "Has {c} got a coast?",
    ], ["Is {c} without access to the sea?", "Does {c} have a coastline?", "Does the country of {c} have a coast?"]),
    "population": (1.5, [
        "How many people live in {c}?", "What is the population of {c}?", "How large is the population of {c}?", "{C}: population?",
        "What is {c}'s population?", "How many inhabitants does {c} have?", "Population of {c}?", "Tell me the population of {c}.",
        "How big is the population of {c}?", "About how many people live in {c}?",
    ], ["How many people are there in {c}?", "How many people does {c} have?", "What is the size of the population of {c}?"]),
    "government": (1.5, [
        "What type of government does {c} have?", "How is {c} governed?", "What is the government type of {c}?", "{C}: government?",
        "What kind of state is {c}?", "What form of government does {c} have?", "Government of {c}?", "What kind of government does {c} have?",
        "Which form of government has {c}?",
    ], ["Which type of government does {c} have?", "What is the form of government of {c}?", "What sort of government does {c} have?"]),
    "adjective": (1.5, [
        "What do you call things from {c}?", "What is the adjective for {c}?", "What is a person from {c} called?", "{C}: adjective?",
        "How do you call someone from {c}?", "What is the word for people from {c}?", "What nationality are people from {c}?",
        "Nationality of people from {c}?", "What is the nationality of someone from {c}?",
    ], ["Which adjective belongs to {c}?", "What do you call someone from {c}?", "Somebody from {c} has which nationality?"]),
    "internet": (1.5, [
        "What is the internet code of {c}?", "Which internet domain does {c} have?", "What is the internet country code of {c}?",
        "{C}: internet code?", "Internet code of {c}?", "What domain do websites from {c} use?", "Tell me the internet code of {c}.",
        "What is {c}'s internet domain?",
    ], ["Which internet country code does {c} use?", "What is the top-level domain of {c}?", "Which internet code belongs to {c}?"]),
    "peak": (2.0, [
        "What is the highest point of {c}?", "What is the highest mountain in {c}?", "Which is the highest peak of {c}?",
        "{C}: highest point?", "Name the highest point of {c}.", "What is {c}'s highest point?", "Highest point of {c}?",
        "Which mountain is the highest in {c}?", "Tell me the highest point of {c}.",
    ], ["Which point is the highest in {c}?", "What is the highest peak in {c}?", "Where is the highest point of {c}?"]),
    "independence": (2.0, [
        "When did {c} become independent?", "In which year did {c} become independent?", "What year did {c} gain independence?",
        "{C}: year of independence?", "When was {c} founded or made independent?", "Since when is {c} independent?",
        "In what year did {c} gain its independence?", "Year of independence of {c}?", "Tell me the year of independence of {c}.",
    ], ["Which year did {c} become independent?", "When did {c} gain independence?", "What is the year of independence of {c}?"]),
    "export": (1.5, [
        "What does {c} export?", "What is the main export of {c}?", "What is {c}'s main export?", "{C}: main export?",
        "What does {c} sell to other countries?", "Name the main export of {c}.", "Main export of {c}?", "Which product does {c} export most?",
        "Tell me the main export of {c}.",
    ], ["Which product is the main export of {c}?", "What is the most important export of {c}?", "What goods does {c} export?"]),
}
POPULATION = {"small": "under 1 million", "medium": "1 to 10 million", "large": "10 to 100 million", "very large": "over 100 million"}


def Join(items):
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def Capitalised(text):
    return text[0].upper() + text[1:]


class Facts:
    """Questions about countries."""

    def __init__(self, folder):
        self.countries = facts_source.Load(folder)
        self.by_name = {c.said: c for c in self.countries}
        self.kinds = list(FACTS)
        self.shares = [FACTS[k][0] for k in self.kinds]

    def Answer(self, rng, kind, c):
        """(answer, accept, x) or None when this country has no such fact."""
        if kind == "capital":
            return c.capital, [], None
        if kind == "capital_of":
            return (Capitalised(c.said), [c.name], c.capital) if c.capital != c.name else None
        if kind == "region":
            return c.region and (c.region, [c.region.removeprefix("the "), "in " + c.region], None)
        if kind == "neighbours":
            if not c.neighbours:
                return "none, it has no land borders", ["none"], None
            names = c.neighbours
            if len(names) > 7:
                return None
            return Capitalised(Join(names)), [Join(names)] + ([", ".join(names)] if len(names) > 1 else []), None
        if kind == "border":
            if not c.neighbours:
                return None
            if rng.random() < 0.5:
                return "yes", ["yes."], rng.choice(c.neighbours)
            pool = [d for d in self.countries if d.region == c.region] if rng.random() < 0.7 else self.countries
            for _ in range(20):
                other = rng.choice(pool)
                if other.said not in c.neighbours and other is not c and c.said not in other.neighbours:
                    return "no", [], other.said
            return None
        if kind == "language":
            return c.languages and (Join(c.languages), [", ".join(c.languages)] if len(c.languages) > 1 else [], None)
        if kind == "currency":
            return c.currency and ("the " + c.currency, [c.currency], None)
        if kind == "currency_code":
            return c.currency_code and (c.currency_code, [], None)
        if kind == "area":
            return c.area and (f"about {c.area} square kilometres",
                               [f"{c.area} square kilometres", f"about {c.area}", c.area, f"about {c.area} sq km"], None)
        if kind == "coastline":
            if c.landlocked:
                return "none, it is landlocked", ["it is landlocked", "0 km"], None
            return c.coast_km and (f"about {c.coast_km} km", [f"{c.coast_km} km", c.coast_km, f"about {c.coast_km} kilometres"], None)
        if kind == "population":
            return c.population_class and (POPULATION[c.population_class], [], None)
        if kind == "government":
            return c.government and ("a" + ("n " if c.government[0] in "aeiou" else " ") + c.government, [c.government], None)
        value = {"adjective": c.adjective, "internet": c.code, "peak": c.peak, "independence": c.year, "export": c.export}.get(kind)
        return value and (value, ["in " + value] if kind == "independence" else [], None)

    def Ask(self, rng, held_out=False, kind=None, country=None):
        for _ in range(100):
            k = kind or rng.choices(self.kinds, self.shares)[0]
            c = country or rng.choice(self.countries)
            template = rng.choice(FACTS[k][2 if held_out else 1])
            if k == "landlocked":
                if c.landlocked is None:
                    continue
                yes = c.landlocked if "landlocked" in template or "without" in template else not c.landlocked
                got = ("yes" if yes else "no", [], None)
            else:
                got = self.Answer(rng, k, c)
            if got:
                answer, accept, x = got
                prompt = template.format(c=c.said, C=Capitalised(c.said), x=x)
                return Dialog(k, [Turn(Capitalised(prompt), answer, accept)])
        raise ValueError(f"no country has the fact {kind}")

    def Describe(self, rng, c):
        """A few sentences about one country, in an order that varies."""
        s = Capitalised(c.said)
        out = [f"{s} is a country in {c.region}." if c.region else f"{s} is a country."]
        rest = [f"Its capital is {c.capital}."]
        if c.area:
            rest.append(f"It covers about {c.area} square kilometres.")
        if c.neighbours and len(c.neighbours) <= 7:
            rest.append(f"It borders {Join(c.neighbours)}.")
        if c.landlocked:
            rest.append("It is landlocked.")
        elif c.coast_km:
            rest.append(f"Its coast is about {c.coast_km} km long.")
        if c.languages:
            rest.append(f"People there speak {Join(c.languages)}.")
        if c.currency:
            rest.append(f"Its currency is the {c.currency}.")
        if c.peak:
            rest.append(f"Its highest point is {c.peak}.")
        if c.year:
            rest.append(f"It became independent in {c.year}.")
        if c.government:
            rest.append(f"It is a{'n' if c.government[0] in 'aeiou' else ''} {c.government}.")
        if c.export:
            rest.append(f"It exports {c.export}.")
        if c.population_class:
            rest.append(f"It has {POPULATION[c.population_class]} people.")
        rng.shuffle(rest)
        return " ".join(out + rest[:rng.randint(3, len(rest))])

    def About(self, rng):
        c = rng.choice(self.countries)
        q = rng.choice(["Tell me about {c}.", "What do you know about {c}?", "Describe {c}.", "Tell me something about {c}.", "Write about {c}."])
        return Dialog("about", [Turn(q.format(c=c.said), self.Describe(rng, c))])

    def Unknown(self, rng, held_out=False):
        """The same phrasings about a country that does not exist."""
        kind = rng.choice([k for k in self.kinds if k not in ("border", "capital_of", "landlocked")])
        name = InventedName(rng)
        name = rng.choice([name, name + "ia", name + "land", name + "stan"])
        template = rng.choice(FACTS[kind][2 if held_out else 1])
        return Dialog("unknown", [Turn(Capitalised(template.format(c=name, C=name)), DONT_KNOW, ["I do not know"])])


# ---------------------------------------------------------------------------------------------------------------- names

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


# ------------------------------------------------------------------------------------------------------------- reading

# Each relation: how to draw its two sides, statements, and for each side the training and the held-out questions with
# the form of the answer.
RELATIONS = {
    "own": dict(a=Pool.Person, b=Pool.Thing,
        say=["{a} owns a {b}.", "The {b} belongs to {a}.", "{a} has a {b}.", "{a} bought a {b}.", "The owner of the {b} is {a}."],
        ask_a=(["Who owns the {b}?", "Who has the {b}?", "To whom does the {b} belong?", "Who is the owner of the {b}?", "The {b} belongs to whom?"],
               ["Whose is the {b}?", "Which person owns the {b}?", "Who does the {b} belong to?"], Plain),
        ask_b=(["What does {a} own?", "What does {a} have?", "What belongs to {a}?", "What is {a} the owner of?"],
               ["Which thing does {a} own?", "What thing belongs to {a}?"], A)),
    "live": dict(a=Pool.Person, b=Pool.Town,
        say=["{a} lives in {b}.", "{a}'s home is in {b}.", "The home of {a} is {b}.", "In {b} lives {a}."],
        ask_a=(["Who lives in {b}?", "Whose home is in {b}?", "Who has a home in {b}?", "Name the person who lives in {b}."],
               ["Which person lives in {b}?", "Who is it that lives in {b}?"], Plain),
        ask_b=(["Where does {a} live?", "In which town does {a} live?", "Where is the home of {a}?", "What town does {a} live in?"],
               ["Where is {a}'s home?", "In what place does {a} live?", "Which town does {a} live in?"], Plain)),
    "job": dict(a=Pool.Person, b=lambda p: p.Pick(JOBS),
        say=["{a} works as a {b}.", "{a} is a {b}.", "The {b} is called {a}.", "{a} is the {b}."],
        ask_a=(["Who is the {b}?", "Who works as a {b}?", "What is the name of the {b}?", "What is the {b} called?"],
               ["Which person is the {b}?", "Name the {b}."], Plain),
        ask_b=(["What is {a}'s job?", "What does {a} do?", "What does {a} work as?", "What is the job of {a}?"],
               ["Which job does {a} have?", "What work does {a} do?"], Plain)),
    "hour": dict(a=lambda p: p.Pick(EVENTS), b=lambda p: p.Number(1, 12),
        say=["The {a} starts at {b}.", "The {a} begins at {b}.", "At {b} the {a} begins.", "The {a} is at {b} o'clock."],
        ask_a=(["What starts at {b}?", "What begins at {b}?", "What happens at {b}?"], ["What is on at {b} o'clock?", "Which thing starts at {b}?"], The),
        ask_b=(["When does the {a} start?", "At what time does the {a} begin?", "What time is the {a}?", "When is the {a}?"],
               ["At which hour does the {a} start?", "When does the {a} begin?"], Plain)),
    "day": dict(a=lambda p: p.Pick(EVENTS), b=lambda p: p.Pick(DAYS),
        say=["The {a} is on {b}.", "On {b} there is a {a}.", "The {a} takes place on {b}."],
        ask_a=(["What is on {b}?", "What takes place on {b}?", "What happens on {b}?"], ["Which event is on {b}?", "What is there on {b}?"], The),
        ask_b=(["On which day is the {a}?", "What day is the {a}?", "On what day does the {a} take place?"],
               ["Which day is the {a} on?", "On what day is the {a}?"], Plain)),
    "place": dict(a=Pool.Thing, b=lambda p: p.Pick(PLACES),
        say=["The {a} is in the {b}.", "In the {b} there is a {a}.", "The {a} stands in the {b}.", "Somebody left the {a} in the {b}."],
        ask_a=(["What is in the {b}?", "What stands in the {b}?", "What can be found in the {b}?"], ["Which thing is in the {b}?", "What was left in the {b}?"], The),
        ask_b=(["Where is the {a}?", "Where can I find the {a}?", "In which place is the {a}?", "Where does the {a} stand?"],
               ["Where was the {a} left?", "In what place is the {a}?"], lambda x: ("in the " + x, ["the " + x, x]))),
    "price": dict(a=Pool.Thing, b=lambda p: p.Number(2, 99),
        say=["The {a} costs {b} coins.", "The price of the {a} is {b} coins.", "For the {a} one pays {b} coins."],
        ask_a=(["What costs {b} coins?", "What can one buy for {b} coins?"], ["Which thing costs {b} coins?"], The),
        ask_b=(["How much does the {a} cost?", "What is the price of the {a}?", "How much is the {a}?", "How many coins does the {a} cost?"],
               ["What does the {a} cost?", "How many coins is the {a}?"], lambda x: (x + " coins", [x]))),
    "age": dict(a=Pool.Person, b=lambda p: p.Number(5, 95),
        say=["{a} is {b} years old.", "{a}'s age is {b}.", "The age of {a} is {b}."],
        ask_a=(["Who is {b} years old?", "Whose age is {b}?"], ["Which person is {b} years old?"], Plain),
        ask_b=(["How old is {a}?", "What is {a}'s age?", "What age is {a}?"], ["What is the age of {a}?", "How many years old is {a}?"],
               lambda x: (x, [x + " years old", x + " years"]))),
    "count": dict(a=Pool.Person, b=lambda p: p.Number(2, 60) + " " + p.Pick(ANIMALS),
        say=["{a} keeps {b}.", "{a} looks after {b}.", "On the farm of {a} there are {b}."],
        ask_a=(["Who keeps {b}?", "Who looks after {b}?", "On whose farm are there {b}?"], ["Which person keeps {b}?"], Plain),
        ask_b=(["Which animals does {a} keep?", "What animals does {a} have?", "What does {a} keep?"],
               ["Which animals does {a} look after?", "What animals are on the farm of {a}?"], Plain)),
    "like": dict(a=Pool.Person, b=lambda p: p.Pick(FOODS),
        say=["{a} likes {b}.", "{a} loves to eat {b}.", "The favourite food of {a} is {b}.", "{a} eats {b} every day."],
        ask_a=(["Who likes {b}?", "Who loves to eat {b}?", "Who eats {b}?", "Whose favourite food is {b}?"], ["Which person likes {b}?", "Who enjoys {b}?"], Plain),
        ask_b=(["What does {a} like?", "What does {a} like to eat?", "What is {a}'s favourite food?", "What does {a} eat?"],
               ["Which food does {a} like?", "What does {a} love to eat?"], Plain)),
    "travel": dict(a=Pool.Person, b=lambda p: p.Pick(VEHICLES),
        say=["{a} travels by {b}.", "{a} came by {b}.", "{a} goes to work by {b}."],
        ask_a=(["Who travels by {b}?", "Who came by {b}?", "Who goes by {b}?"], ["Which person travels by {b}?"], Plain),
        ask_b=(["How does {a} travel?", "How did {a} come?", "How does {a} go?"], ["By what does {a} travel?", "In which way does {a} travel?"],
               lambda x: ("by " + x, [x]))),
    "founded": dict(a=Pool.Town, b=lambda p: p.Number(1200, 1990),
        say=["{a} was founded in {b}.", "The town of {a} was founded in {b}.", "In {b} the town of {a} was founded.", "{a} dates from {b}."],
        ask_a=(["Which town was founded in {b}?", "What was founded in {b}?", "Which town dates from {b}?"], ["What town was founded in {b}?"], Plain),
        ask_b=(["When was {a} founded?", "In which year was {a} founded?", "From what year is {a}?"], ["What year was {a} founded?", "When was the town of {a} founded?"],
               lambda x: (x, ["in " + x]))),
    "role": dict(a=lambda p: p.Pick(ROLES) + " of " + p.Town(), b=Pool.Person,
        say=["The {a} is {b}.", "{b} is the {a}.", "The {a} is called {b}.", "They made {b} the {a}."],
        ask_a=(["What is {b}?", "Which office does {b} hold?", "What role does {b} have?"], ["What office does {b} have?"], The),
        ask_b=(["Who is the {a}?", "What is the name of the {a}?", "What is the {a} called?"], ["Name the {a}.", "Which person is the {a}?"], Plain)),
    "made": dict(a=Pool.Thing, b=lambda p: p.Pick(MATERIALS),
        say=["The {a} is made of {b}.", "They made the {a} from {b}.", "{b} was used to make the {a}."],
        ask_a=(["What is made of {b}?", "What did they make from {b}?"], ["Which thing is made of {b}?"], The),
        ask_b=(["What is the {a} made of?", "Of what is the {a} made?", "What material is the {a} made of?"], ["Which material is the {a} made of?", "What was the {a} made from?"], Plain)),
    "month": dict(a=Pool.Person, b=lambda p: p.Pick(MONTHS),
        say=["{a} was born in {b}.", "{a}'s birthday is in {b}.", "In {b} it is {a}'s birthday."],
        ask_a=(["Who was born in {b}?", "Whose birthday is in {b}?"], ["Which person was born in {b}?"], Plain),
        ask_b=(["When was {a} born?", "In which month was {a} born?", "When is {a}'s birthday?"], ["In what month is {a}'s birthday?", "What month was {a} born in?"],
               lambda x: ("in " + x, [x]))),
    "river": dict(a=Pool.Town, b=Pool.Town,
        say=["{a} lies on the river {b}.", "The river {b} flows through {a}.", "Through {a} flows the river {b}."],
        ask_a=(["Which town lies on the river {b}?", "Through which town does the river {b} flow?", "Where does the river {b} flow?"],
               ["What town is on the river {b}?"], Plain),
        ask_b=(["Which river flows through {a}?", "On which river does {a} lie?", "What river is in {a}?"], ["Which river does {a} lie on?", "What is the river in {a} called?"],
               lambda x: (x, ["the river " + x, "the " + x]))),
}

FRAMES = (["{t} {q}", "{t} {q}", "{t}\n{q}", "{t}\n\n{q}", "Read this: {t} {q}", "{t}\nQuestion: {q}", "Text: {t}\nQuestion: {q}", "{q}\n{t}", "{q} {t}",
           "Here is a story. {t} {q}", "Answer from the text. {t} {q}"],
          ["{t} {q}", "{t}\n{q}", "Read the text and answer. {t} {q}", "{t}\n\nQuestion: {q}"])


def Statement(rng, relation, a, b):
    return Capitalised(rng.choice(RELATIONS[relation]["say"]).format(a=a, b=b))


def Question(rng, relation, a, b, held_out):
    side = rng.choice(["ask_a", "ask_b"])
    train, held, form = RELATIONS[relation][side]
    answer, accept = form(a if side == "ask_a" else b)
    return Turn(Capitalised(rng.choice(held if held_out else train).format(a=a, b=b)), answer, accept)


def Draw(rng, relation, pool):
    return RELATIONS[relation]["a"](pool), RELATIONS[relation]["b"](pool)


def DrawFacts(rng, pool, n):
    """n facts: of one relation, or of a few, or with the same person in several."""
    names = list(RELATIONS)
    style = rng.random()
    chosen = [rng.choice(names)] * n if style < 0.35 else rng.choices(rng.sample(names, min(3, n)), k=n) if style < 0.7 else rng.choices(names, k=n)
    return [(r, *Draw(rng, r, pool)) for r in chosen]


def Reading(rng, held_out=False, level=1.0):
    pool = Pool(rng)
    n = rng.randint(2, 5) if held_out else rng.randint(1, 1 + int(5 * level))
    rows = DrawFacts(rng, pool, n)
    text = " ".join(Statement(rng, *row) for row in rows)
    if held_out:
        q = Question(rng, *rng.choice(rows), True)
        q.prompt = rng.choice(FRAMES[1]).format(t=text, q=q.prompt)
        return Dialog("reading", [q])
    turns = []
    for row in rng.sample(rows, min(len(rows), rng.choice([1, 1, 2, 3, 4]))):
        q = Question(rng, *row, False)
        if rng.random() < 0.04:
            other = Draw(rng, row[0], pool)
            q = Turn(Question(rng, row[0], *other, False).prompt, DONT_KNOW)
        turns.append(q)
    turns[0].prompt = rng.choice(FRAMES[0]).format(t=text, q=turns[0].prompt)
    return Dialog("reading", turns)


# -------------------------------------------------------------------------------------------------- two-step look-ups

# First step a-b, second step b-c. The question names a and wants c (or, `back`, names c and wants a).
CHAINS = {
    "key": dict(a=Pool.Person, b=lambda p: p.Pick(COLOURS) + " key", c=lambda p: p.Pick(PLACES),
        one=["{a} has the {b}.", "The {b} belongs to {a}.", "{a} carries the {b}."], two=["The {b} opens the {c}.", "With the {b} one can open the {c}.", "The {c} is opened by the {b}."],
        ask=(["What does {a} open?", "What can {a} open?", "Which place can {a} open?"], ["Which place does {a} open?", "What is {a} able to open?"], The),
        back=(["Who can open the {c}?", "Who opens the {c}?"], ["Which person can open the {c}?"], Plain)),
    "box": dict(a=lambda p: p.Pick(OBJECTS), b=lambda p: p.Pick(COLOURS) + " box", c=lambda p: p.Pick(PLACES),
        one=["The {a} is in the {b}.", "The {b} holds the {a}.", "In the {b} there is a {a}."], two=["The {b} is in the {c}.", "The {b} stands in the {c}.", "In the {c} stands the {b}."],
        ask=(["In which place is the {a}?", "Where must I go to get the {a}?", "In which room or building is the {a}?"], ["Where should I go for the {a}?", "In which building is the {a}?"],
             lambda x: ("the " + x, ["in the " + x, x, "to the " + x])),
        back=(["What can be found inside the box in the {c}?", "What is in the box in the {c}?"], ["What does the box in the {c} hold?"], The)),
    "boss": dict(a=Pool.Person, b=Pool.Person, c=Pool.Town,
        one=["{a} works for {b}.", "{b} is the boss of {a}.", "The boss of {a} is {b}."], two=["{b} lives in {c}.", "The home of {b} is {c}.", "{b}'s home is in {c}."],
        ask=(["Where does the boss of {a} live?", "In which town does {a}'s boss live?"], ["Where does {a}'s boss live?", "Which town does the boss of {a} live in?"], Plain),
        back=(["Who works for the person who lives in {c}?"], ["Whose boss lives in {c}?"], Plain)),
    "town": dict(a=Pool.Person, b=Pool.Town, c=Pool.Town,
        one=["{a} lives in {b}.", "{a}'s home is in {b}.", "The home of {a} is {b}."], two=["{b} lies on the river {c}.", "The river {c} flows through {b}.", "Through {b} flows the river {c}."],
        ask=(["Which river flows through the town where {a} lives?", "On which river does {a} live?", "Which river is in the town of {a}?"],
             ["Which river flows through {a}'s town?", "What river flows through the town in which {a} lives?"], lambda x: (x, ["the river " + x, "the " + x])),
        back=(["Who lives on the river {c}?", "Who lives in the town on the river {c}?"], ["Which person lives on the river {c}?"], Plain)),
    "child": dict(a=Pool.Person, b=Pool.Person, c=lambda p: p.Pick(JOBS),
        one=["{b} is the child of {a}.", "{a} has a child called {b}.", "The child of {a} is {b}."], two=["{b} works as a {c}.", "{b} is a {c}.", "{b} is the {c}."],
        ask=(["What is the job of {a}'s child?", "What does the child of {a} do?", "What does {a}'s child work as?"], ["Which job does the child of {a} have?", "What is the job of the child of {a}?"], Plain),
        back=(["Whose child is the {c}?", "Whose child works as a {c}?"], ["Who has a child that is a {c}?"], Plain)),
    "dog": dict(a=Pool.Person, b=Pool.Town, c=lambda p: p.Pick(FOODS),
        one=["{a}'s dog is called {b}.", "{a} has a dog called {b}.", "The dog of {a} is {b}."], two=["{b} likes {c}.", "{b} loves to eat {c}.", "{b} eats {c} every day."],
        ask=(["What does {a}'s dog like?", "What does the dog of {a} eat?", "What does {a}'s dog like to eat?"], ["Which food does {a}'s dog like?", "What does the dog of {a} like?"], Plain),
        back=(["Whose dog likes {c}?", "Whose dog eats {c}?"], ["Who has a dog that likes {c}?"], Plain)),
    "bus": dict(a=Pool.Person, b=lambda p: p.Pick(COLOURS) + " bus", c=Pool.Town,
        one=["{a} takes the {b}.", "{a} is on the {b}.", "The {b} carries {a}."], two=["The {b} goes to {c}.", "To {c} goes the {b}.", "The {b} drives to {c}."],
        ask=(["Where does {a} go?", "To which town does {a} go?", "Where will {a} arrive?"], ["Which town does {a} go to?", "Where is {a} going?"], lambda x: (x, ["to " + x])),
        back=(["Who goes to {c}?", "Who will arrive in {c}?"], ["Which person goes to {c}?"], Plain)),
    "team": dict(a=Pool.Person, b=lambda p: p.Pick(COLOURS) + " team", c=lambda p: p.Pick(DAYS),
        one=["{a} plays for the {b}.", "{a} is in the {b}.", "The {b} has a player called {a}."], two=["The {b} plays on {c}.", "On {c} the {b} plays.", "The match of the {b} is on {c}."],
        ask=(["On which day does {a} play?", "When does {a} play?", "On what day does {a} have a match?"], ["Which day does {a} play on?", "On what day does {a} play?"], lambda x: ("on " + x, [x])),
        back=(["Who plays on {c}?", "Who has a match on {c}?"], ["Which person plays on {c}?"], Plain)),
    "shop": dict(a=lambda p: p.Pick(OBJECTS), b=Pool.Person, c=Pool.Town,
        one=["The {a} was made by {b}.", "{b} made the {a}.", "The maker of the {a} is {b}."], two=["{b} comes from {c}.", "{b} was born in {c}.", "The birthplace of {b} is {c}."],
        ask=(["From which town is the maker of the {a}?", "Where was the maker of the {a} born?"], ["Where does the maker of the {a} come from?", "In which town was the maker of the {a} born?"], lambda x: (x, ["from " + x, "in " + x])),
        back=(["What was made by the person from {c}?"], ["What did the person from {c} make?"], The)),
}


def Lookup(rng, held_out=False, level=1.0):
    pool = Pool(rng)
    name = rng.choice(list(CHAINS))
    t = CHAINS[name]
    n = rng.randint(2, 3) if held_out else rng.randint(1, 1 + int(3 * level))
    rows = [(t["a"](pool), t["b"](pool), t["c"](pool)) for _ in range(n)]
    ones = [rng.choice(t["one"]).format(a=a, b=b) for a, b, c in rows]
    twos = [rng.choice(t["two"]).format(b=b, c=c) for a, b, c in rows]
    order = rng.random()
    lines = [x for pair in zip(ones, twos) for x in pair] if order < 0.4 else ones + twos if order < 0.6 else ones + rng.sample(twos, n)
    if order > 0.8:
        rng.shuffle(lines)
    text = " ".join(Capitalised(x) for x in lines)
    turns = []
    for a, b, c in rng.sample(rows, 1 if held_out else min(n, rng.choice([1, 2, 3]))):
        train, held, form = t["ask"]
        wanted = c
        if rng.random() < 0.3:
            (train, held, form), wanted = t["back"], a
        answer, accept = form(wanted)
        turns.append(Turn(Capitalised(rng.choice(held if held_out else train).format(a=a, b=b, c=c)), answer, accept))
    turns[0].prompt = rng.choice(FRAMES[held_out]).format(t=text, q=turns[0].prompt)
    return Dialog("lookup", turns)


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
    (["What is your name?", "What are you called?", "Do you have a name?"], ["Tell me your name."], "I have no name. " + WHO),
    (["Hello", "Hello!", "Hi", "Hi!", "Hi there", "Good morning", "Good evening", "Hey"], ["Hello there!", "Good day!"], "Hello! How can I help you?"),
    (["What can you do?", "How can you help me?", "What can I ask you?", "Help"], ["What can I ask?", "What are you able to do?"],
     "I answer short questions about countries, read short texts and add small numbers."),
    (["Thanks", "Thank you", "Thank you!", "Thanks a lot!", "Great, thanks."], ["Many thanks!"], "You are welcome."),
    (["Bye", "Goodbye", "Goodbye!", "See you."], ["Bye bye!"], "Goodbye!"),
    (["How are you?", "How are you doing?"], ["How are you today?"], "I am well, thank you."),
    (["Who made you?", "Who trained you?", "Where do you come from?"], ["Who created you?"], "I was trained by the Sluice project."),
    (["Are you a human?", "Are you a person?", "Are you human?"], ["Are you a real person?"], "No, I am a small language model."),
    (["How large are you?", "How many parameters do you have?", "How big are you?"], ["What is your size?"], "I have a few million parameters."),
    (["What will the weather be tomorrow?", "Tell me a joke.", "Write a poem.", "What is the meaning of life?", "What time is it?", "Who won the match?",
      "What is love?", "Which film should I watch?", "What is my name?", "How do I bake bread?", "Who is the best singer?", "What is the speed of light?",
      "Who wrote this book?", "Why is the sky blue?", "Which day is it today?"],
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
BLEND = {"facts": 0.36, "about": 0.03, "unknown": 0.015, "reading": 0.24, "lookup": 0.16, "arithmetic": 0.09, "drill": 0.09, "talk": 0.015}


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
