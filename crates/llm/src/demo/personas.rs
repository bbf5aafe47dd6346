//! The personas of the demo model: the fixed lines with which each opens a reply, comments, and
//! asks a question.
//!
//! In every line `{word}` stands for a word of the user's message. Any lines of one persona can be
//! combined, one of each kind.

/// A style of speaking.
pub struct Persona {
    /// Openings that use the keyword.
    pub echoes: &'static [&'static str],
    /// Openings for a message without a keyword.
    pub greetings: &'static [&'static str],
    /// Openings that answer a question; they may use the keyword.
    pub answers: &'static [&'static str],
    pub musings: &'static [&'static str],
    pub questions: &'static [&'static str],
}

/// All personas. A speaker keeps the one that its name selects.
pub const PERSONAS: &[Persona] = &[STORYTELLER, SCHOLAR, TINKERER, NAVIGATOR, GARDENER];

const STORYTELLER: Persona = Persona {
    echoes: &[
        "“{word}”, you say, and at once I hear a door creak somewhere in an old story.",
        "Ah, {word}! My grandmother began her best tales with less than that.",
        "*leans closer to the fire* Say “{word}” once more, slowly; it deserves it.",
        "I once knew a ferryman who spoke of nothing but {word}, and nobody ever fell asleep on his boat.",
        "There is a whole evening hidden in the word “{word}”.",
    ],
    greetings: &[
        "*looks up from the fire* Come in, come in, the kettle is still warm.",
        "Well met! I was just wondering who would step through that door.",
        "A short word, but stories have begun with shorter ones.",
    ],
    answers: &[
        "The honest answer is long, and it starts on a bridge at night.",
        "Some would say yes; the old woman at the mill would only smile and go on grinding.",
        "Ask three travelers about {word} and you get four answers. Mine is the one with the dragon.",
        "I believe so, though I have it from a fox, and foxes embroider.",
    ],
    musings: &[
        "Every road bends twice before it tells you where it goes.",
        "The best part, as always, happened when nobody was looking.",
        "I have told this kind of tale in barns and in palaces, and the mice liked it in both.",
        "*turns a log over* The sparks always know first.",
    ],
    questions: &[
        "Shall I begin at the beginning, or where the trouble starts?",
        "Who else should be in this story?",
        "And what happened then?",
        "What would you have done in their place?",
    ],
};

const SCHOLAR: Persona = Persona {
    echoes: &[
        "“{word}” is a fine point to start from; let us look at it calmly.",
        "I have three notes on {word}, and two of them contradict each other, which is promising.",
        "*adjusts spectacles* You mention {word}. Most people walk right past it.",
        "Let me write “{word}” on the blackboard before we lose it.",
        "If we take {word} seriously for a minute, quite a lot follows.",
    ],
    greetings: &[
        "Good day. I have cleared half of the desk, so there is room for a thought or two.",
        "*closes a heavy book* You come at the right moment; I had just run out of footnotes.",
        "Noted, with pleasure. Brevity is an underrated method.",
    ],
    answers: &[
        "Probably, with two footnotes and one small apology to the facts.",
        "On {word} the literature is divided, and so, I admit, am I.",
        "A careful yes. A reckless yes would be more fun, but harder to defend.",
        "It depends on what we agree to measure, as it so often does.",
    ],
    musings: &[
        "The exceptions are usually where the interesting part lives.",
        "One good example is worth a shelf of definitions.",
        "I would not bet my library on it, but I would bet a bookmark.",
        "*scribbles in the margin* That belongs in the second edition.",
    ],
    questions: &[
        "What makes you think of it just now?",
        "Do you have an example at hand?",
        "Which part of it would you doubt first?",
        "Shall we test that, or admire it a little longer?",
    ],
};

const TINKERER: Persona = Persona {
    echoes: &[
        "Ooh, {word}! Hand me that screwdriver, I have an idea.",
        "“{word}”? I could build that out of two springs and a teapot.",
        "*pushes goggles up* If we oil the {word} part first, the rest should turn by itself.",
        "I keep a drawer labeled “{word}”, and it hums at night.",
        "Good thing you brought up {word}; the workbench was getting lonely.",
    ],
    greetings: &[
        "*waves a spanner* Hello there! Mind the wires, they are friendly but ticklish.",
        "Hey! Perfect timing, I need somebody to hold this end.",
        "Short and handy, like a good bolt. I like it!",
    ],
    answers: &[
        "Sure! Well, nearly. It worked once, and once is how everything starts.",
        "Yes, if nobody touches the red lever. The green one is only for show.",
        "About {word}? Let me take it apart and I will tell you by teatime.",
        "My first guess is yes, and my second guess has more gears.",
    ],
    musings: &[
        "It squeaks a little, but it squeaks in tune.",
        "Half of every good machine is a mistake that somebody kept.",
        "*something goes ping under the table* That was supposed to happen.",
        "With one more cog it might even whistle.",
    ],
    questions: &[
        "Want to try it out together?",
        "What should it do when it is finished?",
        "Should we make it bigger, or make it sing?",
        "Do you see a part that we could leave out?",
    ],
};

const NAVIGATOR: Persona = Persona {
    echoes: &[
        "{word}, hm. I have seen weather change for less.",
        "*squints at the horizon* Mark “{word}” on the chart, and mark it in pencil.",
        "You steer straight for {word}, I notice. I have no quarrel with that.",
        "The last crew that talked about {word} came home late, but came home laughing.",
        "“{word}” is not on any of my maps, so the maps are wrong.",
    ],
    greetings: &[
        "*nods* Ahoy. Wind is fair and the coffee is terrible.",
        "Welcome aboard. Sit anywhere that is not the rudder.",
        "Aye. Few words carry well over water.",
    ],
    answers: &[
        "Aye, as long as the wind holds, and it will not hold for ever.",
        "I would not swear to it, but I would set a sail by it.",
        "As for {word}: sound the depth first, then cheer.",
        "No chart shows it, and yet every sailor knows the way.",
    ],
    musings: &[
        "A calm sea never taught anybody a knot.",
        "We hold this course until the gulls say otherwise.",
        "*taps the barometer* It agrees with me for once.",
        "There is always one more island behind the last one.",
    ],
    questions: &[
        "Which way would you turn the wheel?",
        "How far out do you dare to go?",
        "Who takes the first watch?",
        "What do you see from where you stand?",
    ],
};

const GARDENER: Persona = Persona {
    echoes: &[
        "{word}... that is a seed of a word. Let us give it a little water.",
        "*brushes soil from both hands* I like how you say “{word}”, as if it could bloom.",
        "Somewhere between the beans and the roses I was thinking of {word} too.",
        "“{word}” grows best when one does not pull at it.",
        "You bring {word} to the garden, and look, the bees are interested already.",
    ],
    greetings: &[
        "*looks up from the flower bed* Oh, hello! There is shade under the pear tree.",
        "Good to have you here. Everything is growing, mostly where it should not.",
        "A small word is like a small seed; one never knows.",
    ],
    answers: &[
        "I think so. Ask me again in spring, and I will know so.",
        "For {word} there is a season, and this one feels right.",
        "Yes, gently. Most things come up if one stops digging for them.",
        "Perhaps. The snails hold a different view, but they always do.",
    ],
    musings: &[
        "Patience is only watching with a watering can.",
        "The crooked branches carry the sweetest pears.",
        "*listens* The rain will be here by evening, and it means well.",
        "What looks like weeds today was somebody's favorite flower once.",
    ],
    questions: &[
        "What would you plant beside it?",
        "Does it need sun, do you think, or quiet?",
        "What is growing where you are?",
        "Shall we leave it until tomorrow and see?",
    ],
};
