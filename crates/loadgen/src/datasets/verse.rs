//! Verse, written for this program, which prompts of the dataset `sonnet` are made of.

/// The lines. A change of them changes every such prompt.
pub(super) const VERSE: &str = "\
The harbour wakes before the gulls have cried,
and ropes are loosened in the early grey;
a lantern swings along the waterside
and counts the boats that mean to leave today.
The baker's window yellows on the hill,
the ovens breathe, the narrow street smells warm;
a dog stands listening, and all is still
as if the town had dreamt about a storm.
My father taught me how to read the tide,
to trust the line of weed and not the chart,
to keep the wind a little on one side
and know the coming weather off by heart.
He said that patience is a kind of oar:
you pull, and nothing seems to move at all,
until you turn and see the distant shore
and cannot hear the people there who call.
The orchard stood in snow until the thaw,
its branches thin as writing in the air;
the children found the footprints of a paw
and made up stories of the bear, or hare.
In March the ladder leaned against the bark,
the shears were oiled, the twine cut into lengths,
and we worked on from breakfast until dark
and measured in our hands our little strengths.
By May the bees had found the open bloom,
and every bough was humming like a wire;
the wind came down the valley with a broom
and swept the petals on like sparks of fire.
Now apples wait in baskets by the door,
and some are sweet, and some are hard and green;
we carry up a hundred weight or more
and sleep as those who have been useful mean.
The clock above the station has no hands,
yet every traveller looks up to it;
a woman with a yellow suitcase stands
beside the bench where two old brothers sit.
They speak of engines that they used to drive,
of signals lost in fog, of winter nights,
of how the last express came in at five
with all its windows dark, and no more lights.
The rails run out like thoughts that find no end,
they meet, or seem to, where the hills begin;
and someone there is waiting for a friend,
and someone here is letting no one in.
Then comes the train, a murmur, then a roar,
the doors fold back, the platform fills with talk,
and when it leaves, as every time before,
there is the bench, the clock, and chalk on chalk.
I kept a garden on a roof of tin,
with pots of thyme and beans along a string;
the city let a little sunlight in
and now and then a finch came up to sing.
The neighbours' washing was my only hedge,
their quarrels and their radios my brook;
I sat among the basil on the ledge
and watered every leaf, and read a book.
When rain arrived it drummed on every can,
it filled the saucers and it filled the gutter,
it overtook the slow and thoughtful man
who ran downstairs for bread and cheese and butter.
So small a plot, so little earth to turn,
and yet the summer had the room to stay;
there is not much that anyone must learn
to plant a seed and not to run away.
The miller's wheel has turned since Tuesday noon,
the sacks are white, the rafters white with flour;
the river pays its rent by sun and moon
and grinds the village bread from hour to hour.
A boy is set to listen for the stone,
to hear when it runs dry and say the word;
he has a place to sit, all on his own,
and keeps a crust of barley for a bird.
He hears the water talk beneath the floor,
he hears the belt, the cogwheel and the chain,
and thinks that there is surely something more
that water says and does not say in vain.
At night he tells his sister what he heard;
she draws it with a finger on the sheet:
a wheel, a stone, a river and a bird,
and all of it set moving by the wheat.
The letter came the day the swallows went,
with foreign stamps and edges worn like cloth;
it had been read by others, it was bent,
and in a fold of it there lay a moth.
You wrote about a street of copper pans,
of men who mend old clocks in open stalls,
of women selling water out of cans
and children chasing swifts along the walls.
You wrote that you had learned the word for bread,
the word for thank you and the word for far;
you liked the narrow iron of your bed
and from it you could see a single star.
I keep it in the drawer beside the spoons
and know by now what every line will say;
the swallows have come back for seven Junes,
and you have only moved a street away.
We built the wall in one long afternoon,
from stones the plough had turned up in the field;
we talked of nothing, whistled half a tune,
and felt how stone to stone will slowly yield.
There is a side to each that wants to lie
upon its neighbour's back and be at rest;
you turn it round, you give it one more try,
and what would fit nowhere will then fit best.
The wall is there, though both of us are grey,
and sheep have rubbed the corner smooth as bone;
the children of our children come to play
and set their pebbles next to stone on stone.
If you would ask me what I leave behind,
I could not name a book, a bridge, a law;
but walk along the hill and you will find
two furlongs without mortar, without flaw.
The night the power failed in all the town
we carried candles out and saw the sky;
the tallest buildings put their numbers down
and let the slow enormous stars go by.
An old man named the Plough, the Swan, the Lyre,
a girl asked which of them was still alight;
somebody brought potatoes to a fire,
and no one thought of sleeping half the night.
Then with a click the lamps came on again,
the shops stood lit, the screens began to glow;
we blinked, and laughed, and were polite, and then
remembered there were places we should go.
But sometimes now I look up on my way
between the office and the underground,
and think: they are up there, by night and day,
above the light, and do not make a sound.
The tailor cuts the cloth along the chalk,
the pins between his lips like silver grass;
he does not measure twice, he does not talk,
he sees the customer within the glass.
A sleeve is not a sleeve until it moves,
a collar not a collar till it turns;
whatever he was taught, his hand improves,
and what it loses, that is what he earns.
His needle goes as rain goes down a pane,
it stops, it slips aside, it finds the way;
the thread is blue, the lamp is lit again,
and this is how he ends another day.
Beneath the bridge the slower waters go
with leaves and feathers, boxes, sticks and foam;
I watched them from the railing long ago
and thought that all of them were going home.
";
