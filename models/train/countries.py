"""Questions about countries: the phrasings, and their answers from the facts."""
import facts as facts_source
from dialog import DONT_KNOW, Capitalised, Dialog, InventedName, Join, Turn

# kind: (share, training phrasings, held-out phrasings). {c} is the country as said, {x} a second thing.
FACTS = {
    "capital": (2.0, [
        "What is the capital of {c}?", "What is {c}'s capital?", "Which city is the capital of {c}?", "Name the capital of {c}.",
        "Capital of {c}?", "Tell me the capital of {c}.", "What's the capital city of {c}?", "{C}: capital?",
        "What is the name of the capital of {c}?", "The capital of {c} is", "Where is the government of {c} seated?",
        "Which city is {c}'s capital?", "Give me the capital of {c}.", "Can you name the capital of {c}?", "What city is the capital of {c}?",
        "Please tell me the capital of {c}.", "Do you know what the capital of {c} is?", "I want to know the capital of {c}.",
        "Which city is the capital city of {c}?", "Which town serves {c} as its capital?",
        "What is the capital city of {c} called?", "I have forgotten the capital of {c}.",
        "What is the chief city, the capital, of {c}?", "For {c}, what is the capital?",
        "I am looking for the capital of {c}. Which city is it?",
    ], ["Do you know the capital of {c}?", "Please name the capital city of {c}.", "Which city serves as the capital of {c}?",
        "I forgot the capital of {c}. What is it?", "What is the capital city called in {c}?"]),
    "capital_of": (2.0, [
        "{x} is the capital of which country?", "Which country has {x} as its capital?", "What country is {x} the capital of?",
        "{x} is the capital of", "Which country's capital is {x}?", "Whose capital is {x}?", "Name the country whose capital is {x}.",
        "In which country is {x} the capital?", "{x}: capital of which country?", "Tell me which country has the capital {x}.",
        "{x} is the capital city of which country?", "What country has {x} for its capital?",
        "The capital {x} belongs to which country?", "For which country is {x} the capital?",
        "What is the country that has the capital {x}?", "The city {x} is the capital of which country?",
    ], ["Of which country is {x} the capital?", "The city of {x} is the capital of what country?", "What is the country whose capital city is {x}?"]),
    "region": (1.0, [
        "In which part of the world is {c}?", "Where is {c}?", "Which region is {c} in?", "Where is {c} located?",
        "On which continent is {c}?", "What region does {c} belong to?", "{C}: region?", "In what region does {c} lie?",
        "Tell me where {c} is.", "What part of the world is {c} in?", "Where does {c} lie?",
        "Where can {c} be found?", "In which part of the world can I find {c}?", "Where do I find {c} on a map?",
        "Show me where {c} lies on the map.", "In what part of the world does {c} lie?", "Where on earth is {c}?",
        "Which part of the map shows {c}?", "To which region does {c} belong?", "Can you tell me where {c} is located?",
        "In which region is {c}?", "Where in the world does {c} lie?",
    ], ["Where in the world is {c}?", "In which region can {c} be found?", "Where can I find {c} on the map?"]),
    "neighbours": (4.0, [
        "Which countries border {c}?", "What are the neighbours of {c}?", "Name the neighbours of {c}.", "List the countries that border {c}.",
        "Who are {c}'s neighbours?", "Which countries does {c} border?", "What countries share a border with {c}?",
        "{C}: neighbours?", "With which countries does {c} share a border?", "Tell me the neighbours of {c}.",
        "List the neighbours of {c}.", "Which countries are next to {c}?", "What are the neighbouring countries of {c}?",
        "Please name the neighbours of {c}.", "Which countries are neighbours to {c}?", "What are the countries around {c}?",
        "Tell me which countries border {c}.", "Which are the neighbours of {c}?", "What other countries does {c} border?",
        "Name all countries that border on {c}.",
    ], ["Which countries are neighbours of {c}?", "Name the countries that border {c}.", "What countries does {c} border?",
        "Please list the neighbours of {c}."]),
    "border": (2.0, [
        "Does {c} border {x}?", "Is {c} next to {x}?", "Do {c} and {x} share a border?", "Is {x} a neighbour of {c}?",
        "Does {c} share a border with {x}?", "Are {c} and {x} neighbours?", "Is there a border between {c} and {x}?",
        "Does {c} touch {x}?",
        "Does {c} border on {x}?", "Is there a common border of {c} and {x}?", "Do {c} and {x} have a common border?",
        "Is {c} a neighbour country of {x}?", "Do {c} and {x} touch each other?", "Does {x} have a common border with {c}?",
        "Are {x} and {c} next to each other?", "Has {c} a border with {x}?", "Is {c} beside {x}?",
    ], ["Do {c} and {x} border each other?", "Is {c} a neighbour of {x}?", "Does {c} have a border with {x}?"]),
    "language": (2.0, [
        "What language is spoken in {c}?", "What are the official languages of {c}?", "Which language do people speak in {c}?",
        "What is the official language of {c}?", "What do people speak in {c}?", "{C}: language?", "Which languages are spoken in {c}?",
        "Name the official language of {c}.", "What language do they speak in {c}?", "Language of {c}?", "Tell me the language of {c}.",
        "What is the language of {c}?",
        "Which language is used in {c}?", "What language do people use in {c}?", "Which languages are official in {c}?",
        "What language would people speak to me in {c}?", "Which language will I hear when I am in {c}?",
        "In {c}, what language is spoken?", "What language can I hear in {c}?", "Which languages do people use in {c}?",
        "Please name the language of {c}.", "Which official languages does {c} have?",
    ], ["Which language is official in {c}?", "What languages are used in {c}?", "What language is used in {c}?", "Which language would I hear in {c}?"]),
    "currency": (2.0, [
        "What is the currency of {c}?", "What money is used in {c}?", "Which currency does {c} use?", "What currency is used in {c}?",
        "Name the currency of {c}.", "{C}: currency?", "What do people pay with in {c}?", "What is {c}'s currency?",
        "Currency of {c}?", "Tell me the currency of {c}.", "Which money do they use in {c}?", "What is the money of {c} called?",
        "With what money do people pay in {c}?", "What is the money in {c}?", "In {c}, which currency is used?",
        "Which kind of money is used in {c}?", "How does one pay in {c}?", "Please name the currency of {c}.",
    ], ["Which currency is used in {c}?", "What currency do people use in {c}?", "How do people pay in {c}?", "What kind of money does {c} use?"]),
    "currency_code": (1.0, [
        "What is the currency code of {c}?", "Which currency code does {c} use?", "Give the three-letter currency code of {c}.",
        "{C}: currency code?", "Currency code of {c}?", "What is the code of the currency of {c}?", "Name the currency code of {c}.",
        "What is {c}'s currency code?",
        "Which three-letter code stands for the currency of {c}?", "What is the three-letter currency code of {c}?",
        "The currency of {c} has which code?", "For {c}, what is the currency code?", "Tell me the currency code of {c}.",
        "Which currency code belongs to {c}?", "What code does the currency of {c} have?", "What is the code for the money of {c}?",
    ], ["Which code does the currency of {c} have?", "What is the three-letter code for the currency of {c}?"]),
    "area": (4.5, [
        "What is the area of {c}?", "How large is {c}?", "How many square kilometres does {c} cover?", "What is {c}'s area?",
        "How big is {c}?", "{C}: area?", "Tell me the area of {c}.", "What area does {c} cover?", "Area of {c}?",
        "How big is the area of {c}?", "Give the area of {c} in square kilometres.", "How much land does {c} cover?",
        "What is the size of {c}?", "How large is {c} in square kilometres?",
        "What is the full area of {c}?", "How many square kilometres is {c}?", "How big is {c} in all?",
        "Please tell me how large {c} is.", "What is the size of {c} in square kilometres?", "What is the area covered by {c}?",
        "How large an area does {c} have?",
    ], ["What is the total area of {c}?", "How big is {c} in square kilometres?", "How large is the area of {c}?", "What size is {c}?"]),
    "coastline": (4.0, [
        "How long is the coastline of {c}?", "How long is {c}'s coast?", "What is the length of the coastline of {c}?",
        "How many kilometres of coast does {c} have?", "{C}: coastline?", "What is the length of {c}'s coastline?",
        "Coastline of {c}?", "Tell me the length of the coast of {c}.", "How long is the coast of {c}?", "How much coastline does {c} have?",
        "How many kilometres is the coast of {c}?", "How long is the coastline that {c} has?",
        "What is the length of the coast of {c}?", "How many kilometres long is {c}'s coastline?",
        "Please tell me how long the coast of {c} is.", "How long a coast does {c} have?",
    ], ["What length is the coastline of {c}?", "How many kilometres long is the coast of {c}?", "How long a coastline does {c} have?"]),
    "landlocked": (1.0, [
        "Is {c} landlocked?", "Does {c} have a coast?", "Does {c} have access to the sea?", "Is {c} by the sea?",
        "Is {c} a landlocked country?", "Does {c} lie on the sea?", "Has {c} got a coast?",
        "Does {c} have any coast?", "Does {c} have a sea coast?", "Has {c} a coastline?", "Is there a coast in {c}?",
        "Does {c} reach the sea?", "Can one reach the sea in {c}?", "Is {c} without a coast, that is landlocked?",
        "Does the country {c} have access to the sea?", "Is the country {c} landlocked?", "Has the country {c} a coast?",
        "Is {c} without a coast?", "Does {c} lack access to the sea?",
    ], ["Is {c} without access to the sea?", "Does {c} have a coastline?", "Does the country of {c} have a coast?"]),
    "population": (1.5, [
        "How many people live in {c}?", "What is the population of {c}?", "How large is the population of {c}?", "{C}: population?",
        "What is {c}'s population?", "How many inhabitants does {c} have?", "Population of {c}?", "Tell me the population of {c}.",
        "How big is the population of {c}?", "About how many people live in {c}?",
        "How many people are in {c}?", "How many people live there in {c}?", "How many persons live in {c}?",
        "How many people does {c} count?", "What number of people live in {c}?", "How many people has {c} got?",
        "What is the number of people in {c}?", "How many inhabitants are there in {c}?", "How populous is {c}?",
        "The population of {c} is how large?", "For {c}, how many people live there?",
    ], ["How many people are there in {c}?", "How many people does {c} have?", "What is the size of the population of {c}?"]),
    "government": (1.5, [
        "What type of government does {c} have?", "How is {c} governed?", "What is the government type of {c}?", "{C}: government?",
        "What kind of state is {c}?", "What form of government does {c} have?", "Government of {c}?", "What kind of government does {c} have?",
        "Which form of government has {c}?",
        "Which kind of government does {c} have?", "What sort of state is {c}?", "Which form of government does {c} have?",
        "What is the type of government in {c}?", "Please name the form of government of {c}.",
    ], ["Which type of government does {c} have?", "What is the form of government of {c}?", "What sort of government does {c} have?"]),
    "adjective": (1.5, [
        "What do you call things from {c}?", "What is the adjective for {c}?", "What is a person from {c} called?", "{C}: adjective?",
        "How do you call someone from {c}?", "What is the word for people from {c}?", "What nationality are people from {c}?",
        "Nationality of people from {c}?", "What is the nationality of someone from {c}?",
        "Which adjective goes with {c}?", "What adjective belongs to the country {c}?", "Which adjective means from {c}?",
        "What do you call somebody from {c}?", "What do we call a person from {c}?", "What do you call people from {c}?",
        "Someone from {c} is called what?", "Which nationality has a person from {c}?", "Somebody who comes from {c} is what?",
        "What is the adjective of {c}?", "A person from {c} has which nationality?", "Name the adjective for {c}.",
    ], ["Which adjective belongs to {c}?", "What do you call someone from {c}?", "Somebody from {c} has which nationality?"]),
    "internet": (1.5, [
        "What is the internet code of {c}?", "Which internet domain does {c} have?", "What is the internet country code of {c}?",
        "{C}: internet code?", "Internet code of {c}?", "What domain do websites from {c} use?", "Tell me the internet code of {c}.",
        "What is {c}'s internet domain?",
        "Which internet code does {c} use?", "Which top-level domain does {c} use?", "Name the top-level domain for {c}.",
        "What is the internet domain of {c}?", "Which internet domain belongs to {c}?",
        "What is the top domain on the internet for {c}?", "What country code does {c} have on the internet?",
        "Which internet country code belongs to {c}?", "Which code do websites of {c} end in?",
        "What is the internet code for {c}?", "Top-level domain of {c}?", "What country code on the internet does {c} use?",
    ], ["Which internet country code does {c} use?", "What is the top-level domain of {c}?", "Which internet code belongs to {c}?"]),
    "peak": (2.0, [
        "What is the highest point of {c}?", "What is the highest mountain in {c}?", "Which is the highest peak of {c}?",
        "{C}: highest point?", "Name the highest point of {c}.", "What is {c}'s highest point?", "Highest point of {c}?",
        "Which mountain is the highest in {c}?", "Tell me the highest point of {c}.",
        "Which peak is the highest in {c}?", "Where in {c} is the highest point?", "What is the highest point in {c}?",
        "What is the top of {c}, its highest point?", "What is the name of the highest point of {c}?",
        "Which place is the highest point of {c}?", "Which is the highest mountain of {c}?",
    ], ["Which point is the highest in {c}?", "What is the highest peak in {c}?", "Where is the highest point of {c}?"]),
    "independence": (2.0, [
        "When did {c} become independent?", "In which year did {c} become independent?", "What year did {c} gain independence?",
        "{C}: year of independence?", "When was {c} founded or made independent?", "Since when is {c} independent?",
        "In what year did {c} gain its independence?", "Year of independence of {c}?", "Tell me the year of independence of {c}.",
        "What year did {c} become independent?", "When was {c} made independent?", "Which year brought {c} independence?",
        "When did {c} get its independence?", "In which year did {c} get independence?", "What is {c}'s year of independence?",
        "Which is the year of independence of {c}?", "Since which year has {c} been independent?",
    ], ["Which year did {c} become independent?", "When did {c} gain independence?", "What is the year of independence of {c}?"]),
    "export": (1.5, [
        "What does {c} export?", "What is the main export of {c}?", "What is {c}'s main export?", "{C}: main export?",
        "What does {c} sell to other countries?", "Name the main export of {c}.", "Main export of {c}?", "Which product does {c} export most?",
        "Tell me the main export of {c}.",
        "Which goods does {c} export?", "What is exported by {c}?", "What product does {c} export?",
        "Which export is the most important of {c}?", "What is the chief export of {c}?", "What does {c} mainly export?",
        "Which goods does {c} sell abroad?", "What is the first export of {c}?",
    ], ["Which product is the main export of {c}?", "What is the most important export of {c}?", "What goods does {c} export?"]),
}
POPULATION = {"small": "under 1 million", "medium": "1 to 10 million", "large": "10 to 100 million", "very large": "over 100 million"}


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
                negative = any(word in template for word in ("landlocked", "without", " lack "))
                yes = c.landlocked if negative else not c.landlocked
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
