"""Questions whose answer stands in the prompt: reading, two-step look-ups, repeating."""
from dialog import (ANIMALS, COLOURS, COLOURS_OBJECTS, DAYS, DONT_KNOW, EVENTS, FOODS, JOBS, MATERIALS, MONTHS, OBJECTS, PLACES, ROLES,
                    VEHICLES, A, Capitalised, Dialog, Plain, Pool, The, Turn)

# Each relation: how to draw its two sides, statements, and for each side the training and the held-out questions with
# the form of the answer.
RELATIONS = {
    "own": dict(a=Pool.Person, b=Pool.Thing,
        say=["{a} owns a {b}.", "The {b} belongs to {a}.", "{a} has a {b}.", "{a} bought a {b}.", "The owner of the {b} is {a}."],
        ask_a=(["Who owns the {b}?", "Who has the {b}?", "To whom does the {b} belong?", "Who is the owner of the {b}?",
                "The {b} belongs to whom?", "Who is it that has the {b}?", "Whose property is the {b}?", "Which man or woman has the {b}?",
                "Name the owner of the {b}.", "Which person has the {b}?", "By whom is the {b} owned?"],
               ["Whose is the {b}?", "Which person owns the {b}?", "Who does the {b} belong to?"], Plain),
        ask_b=(["What does {a} own?", "What does {a} have?", "What belongs to {a}?", "What is {a} the owner of?", "What is owned by {a}?",
                "What is it that {a} owns?", "Which object is {a}'s?", "Name the thing that {a} has.", "Which thing belongs to {a}?",
                "What thing does {a} have?"],
               ["Which thing does {a} own?", "What thing belongs to {a}?"], A)),
    "live": dict(a=Pool.Person, b=Pool.Town,
        say=["{a} lives in {b}.", "{a}'s home is in {b}.", "The home of {a} is {b}.", "In {b} lives {a}."],
        ask_a=(["Who lives in {b}?", "Whose home is in {b}?", "Who has a home in {b}?", "Name the person who lives in {b}.",
                "Which person has a home in {b}?", "Who is living in {b}?", "Who is at home in {b}?", "Tell me who lives in {b}.",
                "What is the name of the person in {b}?"],
               ["Which person lives in {b}?", "Who is it that lives in {b}?"], Plain),
        ask_b=(["Where does {a} live?", "In which town does {a} live?", "Where is the home of {a}?", "What town does {a} live in?",
                "In what town is {a} at home?", "Which place does {a} live in?", "In which place is {a}'s home?",
                "Name the town where {a} lives.", "What is {a}'s town?", "Where is {a} living?"],
               ["Where is {a}'s home?", "In what place does {a} live?", "Which town does {a} live in?"], Plain)),
    "job": dict(a=Pool.Person, b=lambda p: p.Pick(JOBS),
        say=["{a} works as a {b}.", "{a} is a {b}.", "The {b} is called {a}.", "{a} is the {b}."],
        ask_a=(["Who is the {b}?", "Who works as a {b}?", "What is the name of the {b}?", "What is the {b} called?",
                "Who is it that works as a {b}?", "Which person works as a {b}?", "Name the person who is a {b}.", "Who is a {b}?",
                "What person is the {b}?"],
               ["Which person is the {b}?", "Name the {b}."], Plain),
        ask_b=(["What is {a}'s job?", "What does {a} do?", "What does {a} work as?", "What is the job of {a}?", "Which work does {a} do?",
                "What job does {a} have?", "Name the job of {a}.", "As what does {a} work?", "Which is {a}'s job?", "What is {a}?"],
               ["Which job does {a} have?", "What work does {a} do?"], Plain)),
    "hour": dict(a=lambda p: p.Pick(EVENTS), b=lambda p: p.Number(1, 12),
        say=["The {a} starts at {b}.", "The {a} begins at {b}.", "At {b} the {a} begins.", "The {a} is at {b} o'clock."],
        ask_a=(["What starts at {b}?", "What begins at {b}?", "What happens at {b}?", "Which event starts at {b}?",
                "What is at {b} o'clock?", "What thing begins at {b}?", "Name what begins at {b}.",
                "Which event is at {b} o'clock?"], ["What is on at {b} o'clock?", "Which thing starts at {b}?"], The),
        ask_b=(["When does the {a} start?", "At what time does the {a} begin?", "What time is the {a}?", "When is the {a}?",
                "At what hour does the {a} begin?", "At which hour is the {a}?", "When will the {a} start?", "Tell me when the {a} starts.",
                "What is the time of the {a}?", "At which time does the {a} begin?"],
               ["At which hour does the {a} start?", "When does the {a} begin?"], Plain)),
    "day": dict(a=lambda p: p.Pick(EVENTS), b=lambda p: p.Pick(DAYS),
        say=["The {a} is on {b}.", "On {b} there is a {a}.", "The {a} takes place on {b}."],
        ask_a=(["What is on {b}?", "What takes place on {b}?", "What happens on {b}?", "Which event takes place on {b}?",
                "What is planned for {b}?", "What event is there on {b}?", "Name the event on {b}.",
                "Which thing happens on {b}?"], ["Which event is on {b}?", "What is there on {b}?"], The),
        ask_b=(["On which day is the {a}?", "What day is the {a}?", "On what day does the {a} take place?",
                "Which day does the {a} take place on?", "When does the {a} take place?", "Name the day of the {a}.",
                "What is the day of the {a}?", "On what day will the {a} be?"],
               ["Which day is the {a} on?", "On what day is the {a}?"], Plain)),
    "place": dict(a=Pool.Thing, b=lambda p: p.Pick(PLACES),
        say=["The {a} is in the {b}.", "In the {b} there is a {a}.", "The {a} stands in the {b}.", "Somebody left the {a} in the {b}."],
        ask_a=(["What is in the {b}?", "What stands in the {b}?", "What can be found in the {b}?", "Which thing stands in the {b}?",
                "What did somebody leave in the {b}?", "Which object can be found in the {b}?", "Name the thing in the {b}.",
                "What thing is there in the {b}?"], ["Which thing is in the {b}?", "What was left in the {b}?"], The),
        ask_b=(["Where is the {a}?", "Where can I find the {a}?", "In which place is the {a}?", "Where does the {a} stand?",
                "Where did somebody leave the {a}?", "In what place can I find the {a}?", "Where must I look for the {a}?",
                "Where was the {a} put?", "In which place was the {a} left?", "Where can the {a} be found?"],
               ["Where was the {a} left?", "In what place is the {a}?"], lambda x: ("in the " + x, ["the " + x, x]))),
    "price": dict(a=Pool.Thing, b=lambda p: p.Number(2, 99),
        say=["The {a} costs {b} coins.", "The price of the {a} is {b} coins.", "For the {a} one pays {b} coins."],
        ask_a=(["What costs {b} coins?", "What can one buy for {b} coins?", "Which thing can one buy for {b} coins?",
                "What is sold for {b} coins?", "Which object has a price of {b} coins?",
                "What thing is it that costs {b} coins?"], ["Which thing costs {b} coins?"], The),
        ask_b=(["How much does the {a} cost?", "What is the price of the {a}?", "How much is the {a}?", "How many coins does the {a} cost?",
                "What must one pay for the {a}?", "How many coins must one pay for the {a}?", "What is the {a}'s price?",
                "At what price is the {a} sold?", "How many coins does one pay for the {a}?"],
               ["What does the {a} cost?", "How many coins is the {a}?"], lambda x: (x + " coins", [x]))),
    "age": dict(a=Pool.Person, b=lambda p: p.Number(5, 95),
        say=["{a} is {b} years old.", "{a}'s age is {b}.", "The age of {a} is {b}."],
        ask_a=(["Who is {b} years old?", "Whose age is {b}?", "Who is {b}?", "Which person has an age of {b}?",
                "Name the person who is {b} years old.",
                "Which man or woman is {b} years old?"], ["Which person is {b} years old?"], Plain),
        ask_b=(["How old is {a}?", "What is {a}'s age?", "What age is {a}?", "What is the age that {a} has?",
                "How many years has {a} lived?", "Tell me the age of {a}.", "Of what age is {a}?",
                "How many years of age is {a}?"], ["What is the age of {a}?", "How many years old is {a}?"],
               lambda x: (x, [x + " years old", x + " years"]))),
    "count": dict(a=Pool.Person, b=lambda p: p.Number(2, 60) + " " + p.Pick(ANIMALS),
        say=["{a} keeps {b}.", "{a} looks after {b}.", "On the farm of {a} there are {b}."],
        ask_a=(["Who keeps {b}?", "Who looks after {b}?", "On whose farm are there {b}?", "Who is it that keeps {b}?",
                "Which person looks after {b}?", "Name the person who keeps {b}.", "Whose are the {b}?",
                "Who has {b}?"], ["Which person keeps {b}?"], Plain),
        ask_b=(["Which animals does {a} keep?", "What animals does {a} have?", "What does {a} keep?", "Which animals are kept by {a}?",
                "What does {a} look after?", "What animals does {a} look after?", "Which animals are on {a}'s farm?",
                "Name the animals of {a}.", "What is there on the farm of {a}?"],
               ["Which animals does {a} look after?", "What animals are on the farm of {a}?"], Plain)),
    "like": dict(a=Pool.Person, b=lambda p: p.Pick(FOODS),
        say=["{a} likes {b}.", "{a} loves to eat {b}.", "The favourite food of {a} is {b}.", "{a} eats {b} every day."],
        ask_a=(["Who likes {b}?", "Who loves to eat {b}?", "Who eats {b}?", "Whose favourite food is {b}?", "Which person eats {b}?",
                "Who is fond of {b}?", "Which person loves {b}?", "Name the person who likes {b}.", "By whom is {b} eaten?",
                "Who is it that likes {b}?"], ["Which person likes {b}?", "Who enjoys {b}?"], Plain),
        ask_b=(["What does {a} like?", "What does {a} like to eat?", "What is {a}'s favourite food?", "What does {a} eat?",
                "Which food does {a} eat?", "What food does {a} love?", "What is {a} fond of?", "Which food is {a}'s favourite?",
                "Name the favourite food of {a}.", "What does {a} enjoy?"],
               ["Which food does {a} like?", "What does {a} love to eat?"], Plain)),
    "travel": dict(a=Pool.Person, b=lambda p: p.Pick(VEHICLES),
        say=["{a} travels by {b}.", "{a} came by {b}.", "{a} goes to work by {b}."],
        ask_a=(["Who travels by {b}?", "Who came by {b}?", "Who goes by {b}?", "Which person goes by {b}?", "Who is it that goes by {b}?",
                "Who uses a {b}?", "Name the person who came by {b}.",
                "Which person came by {b}?"], ["Which person travels by {b}?"], Plain),
        ask_b=(["How does {a} travel?", "How did {a} come?", "How does {a} go?", "By what does {a} go?", "By what did {a} come?",
                "In which way does {a} go to work?", "How does {a} get to work?", "With what does {a} travel?",
                "In what way did {a} come?"], ["By what does {a} travel?", "In which way does {a} travel?"],
               lambda x: ("by " + x, [x]))),
    "founded": dict(a=Pool.Town, b=lambda p: p.Number(1200, 1990),
        say=["{a} was founded in {b}.", "The town of {a} was founded in {b}.", "In {b} the town of {a} was founded.", "{a} dates from {b}."],
        ask_a=(["Which town was founded in {b}?", "What was founded in {b}?", "Which town dates from {b}?", "What town dates from {b}?",
                "Name the town that was founded in {b}.", "Which place was founded in {b}?",
                "What is the town that dates from {b}?"], ["What town was founded in {b}?"], Plain),
        ask_b=(["When was {a} founded?", "In which year was {a} founded?", "From what year is {a}?", "From which year does {a} date?",
                "In what year was the town of {a} founded?", "What year does {a} date from?", "Which year was {a} founded in?",
                "Since when is there a town of {a}?"], ["What year was {a} founded?", "When was the town of {a} founded?"],
               lambda x: (x, ["in " + x]))),
    "role": dict(a=lambda p: p.Pick(ROLES) + " of " + p.Town(), b=Pool.Person,
        say=["The {a} is {b}.", "{b} is the {a}.", "The {a} is called {b}.", "They made {b} the {a}."],
        ask_a=(["What is {b}?", "Which office does {b} hold?", "What role does {b} have?", "Which office has {b}?",
                "Which role does {b} have?", "What role was given to {b}?", "What did they make {b}?",
                "What office does {b} hold?"], ["What office does {b} have?"], The),
        ask_b=(["Who is the {a}?", "What is the name of the {a}?", "What is the {a} called?", "Tell me the name of the {a}.",
                "Which person holds the office of {a}?", "Who was made the {a}?", "Whom did they make the {a}?",
                "Who holds the office of {a}?", "Give the name of the {a}."], ["Name the {a}.", "Which person is the {a}?"], Plain)),
    "made": dict(a=Pool.Thing, b=lambda p: p.Pick(MATERIALS),
        say=["The {a} is made of {b}.", "They made the {a} from {b}.", "{b} was used to make the {a}."],
        ask_a=(["What is made of {b}?", "What did they make from {b}?", "Which thing did they make from {b}?",
                "Which object is made of {b}?", "What thing was made from {b}?", "Name the thing that is made of {b}.",
                "What was made with {b}?"], ["Which thing is made of {b}?"], The),
        ask_b=(["What is the {a} made of?", "Of what is the {a} made?", "What material is the {a} made of?",
                "From what did they make the {a}?", "Which material was used for the {a}?", "What was used to make the {a}?",
                "Of which material is the {a}?", "What was the {a} made of?",
                "From what material is the {a} made?"], ["Which material is the {a} made of?", "What was the {a} made from?"], Plain)),
    "month": dict(a=Pool.Person, b=lambda p: p.Pick(MONTHS),
        say=["{a} was born in {b}.", "{a}'s birthday is in {b}.", "In {b} it is {a}'s birthday."],
        ask_a=(["Who was born in {b}?", "Whose birthday is in {b}?", "Which person has a birthday in {b}?",
                "Who is it that was born in {b}?", "Name the person who was born in {b}.",
                "Who has a birthday in {b}?"], ["Which person was born in {b}?"], Plain),
        ask_b=(["When was {a} born?", "In which month was {a} born?", "When is {a}'s birthday?", "What month is {a}'s birthday in?",
                "In what month was {a} born?", "Which month was {a} born in?", "In which month does {a} have a birthday?",
                "When does {a} have a birthday?", "What is the month of {a}'s birth?"], ["In what month is {a}'s birthday?",
                "What month was {a} born in?"],
               lambda x: ("in " + x, [x]))),
    "river": dict(a=Pool.Town, b=Pool.Town,
        say=["{a} lies on the river {b}.", "The river {b} flows through {a}.", "Through {a} flows the river {b}."],
        ask_a=(["Which town lies on the river {b}?", "Through which town does the river {b} flow?", "Where does the river {b} flow?",
                "Which town does the river {b} flow through?", "Which town is on the river {b}?", "What town lies on the river {b}?",
                "Name the town on the river {b}.", "Through what town does the river {b} flow?"],
               ["What town is on the river {b}?"], Plain),
        ask_b=(["Which river flows through {a}?", "On which river does {a} lie?", "What river is in {a}?", "What river does {a} lie on?",
                "On what river is {a}?", "What river flows through {a}?", "Name the river in {a}.", "What is the name of the river in {a}?",
                "Which river is in {a}?"], ["Which river does {a} lie on?", "What is the river in {a} called?"],
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
    turns, asked = [], set()
    for _ in range(rng.choice([1, 2, 4, 6])):  # many questions about one text: more answers for the same tokens
        row = rng.choice(rows)
        q = Question(rng, *row, False)
        if rng.random() < 0.04:
            other = Draw(rng, row[0], pool)
            q = Turn(Question(rng, row[0], *other, False).prompt, DONT_KNOW)
        if q.answer == DONT_KNOW or (row, q.answer) not in asked:
            asked.add((row, q.answer))
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
    turns, asked = [], set()
    for _ in range(1 if held_out else rng.choice([1, 2, 3, 5])):
        a, b, c = rng.choice(rows)
        train, held, form = t["ask"]
        wanted = c
        if rng.random() < 0.3:
            (train, held, form), wanted = t["back"], a
        answer, accept = form(wanted)
        if answer not in asked:
            asked.add(answer)
            turns.append(Turn(Capitalised(rng.choice(held if held_out else train).format(a=a, b=b, c=c)), answer, accept))
    turns[0].prompt = rng.choice(FRAMES[held_out]).format(t=text, q=turns[0].prompt)
    return Dialog("lookup", turns)


# -------------------------------------------------------------------------------------------------------------- repeat

def Repeat(rng):
    """Copying, the root of reading: say it again, say what came after."""
    pool = Pool(rng)
    words = [rng.choice([pool.Person, pool.Town, pool.Thing, lambda: pool.Number(1, 99)])() for _ in range(rng.randint(1, 10))]
    turns = []
    text = ", ".join(words)
    i = rng.randrange(len(words))
    r = rng.random()
    if r < 0.5 or len(words) == 1:
        turns.append(Turn(rng.choice(["Repeat: {t}", "Say this again: {t}", "Repeat after me: {t}", "Copy this: {t}"]).format(t=text), text))
    elif r < 0.75:
        i = max(1, i)
        turns.append(Turn(f"{text}\n" + rng.choice(["What comes after {w}?", "What follows {w}?"]).format(w=words[i - 1]), words[i]))
    else:
        which = rng.choice(["first", "last"])
        turns.append(Turn(f"{text}\nWhat comes {which}?", words[0 if which == "first" else -1]))
    return Dialog("repeat", turns)
