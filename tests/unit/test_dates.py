"""The time range a question names (C13): one table of phrasings, each with what a person would mean by it."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from holdfast.errors import InputError
from holdfast.text.dates import TimeRange, time_mention

TUESDAY = datetime(2023, 5, 30, 14, 30, tzinfo=UTC)
SATURDAY = datetime(2023, 6, 3, 10, 0, tzinfo=UTC)
MONDAY = datetime(2023, 6, 5, 9, 0, tzinfo=UTC)
MONTH_END = datetime(2023, 3, 31, 12, 0, tzinfo=UTC)  # a Friday
LEAP_MONTH_END = datetime(2024, 3, 31, 12, 0, tzinfo=UTC)  # a Sunday, two days after Good Friday
LEAP_DAY = datetime(2024, 2, 29, 12, 0, tzinfo=UTC)  # a Thursday
NEW_YEAR = datetime(2024, 1, 2, 9, 0, tzinfo=UTC)  # a Tuesday
DECEMBER = datetime(2023, 12, 28, 9, 0, tzinfo=UTC)  # a Thursday
# The night before, clocks went from two to three; the day has 23 hours.
SUMMER_TIME = datetime(2023, 3, 26, 12, 0, tzinfo=ZoneInfo("Europe/Berlin"))
# Already 2023 in Kathmandu, still 2022 in Greenwich.
EAST = datetime(2023, 1, 1, 2, 0, tzinfo=timezone(timedelta(hours=5, minutes=45)))

# `start/end`, half open; an empty side is open.
RANGES = {
    TUESDAY: {
        # dates in figures
        "What happened on 2023-04-02?": "2023-04-02/2023-04-03",
        "Show me what I wrote at 2023-04-02T09:30:00Z": "2023-04-02/2023-04-03",
        "Notes of 2022/11/05 please": "2022-11-05/2022-11-06",
        "Who came on 12/25/2022?": "2022-12-25/2022-12-26",
        "Who came on 25/12/2022?": "2022-12-25/2022-12-26",
        "What did I pay on 3/29/23?": "2023-03-29/2023-03-30",
        "What did I pay on 05/05/2023?": "2023-05-05/2023-05-06",
        "Which parcel arrived on 4/25?": "2023-04-25/2023-04-26",
        # dates in words
        "What did I promise Anna on May 7, 2023?": "2023-05-07/2023-05-08",
        "What did I promise Anna on May 7 2023?": "2023-05-07/2023-05-08",
        "Where did we eat on 7 May?": "2023-05-07/2023-05-08",
        "Where did we eat on June 7?": "2022-06-07/2022-06-08",
        "What did the doctor say on the 3rd of June 2022?": "2022-06-03/2022-06-04",
        "Who was at the barbecue on the Fourth of July?": "2022-07-04/2022-07-05",
        "What did I spend on Sept. 5th, 2021?": "2021-09-05/2021-09-06",
        "what happened on march 10": "2023-03-10/2023-03-11",
        "What was the outcome of the May 9 hearing?": "2023-05-09/2023-05-10",
        "What did I note on Monday, May 8?": "2023-05-08/2023-05-09",
        "Where was I on the 15th?": "2023-05-15/2023-05-16",
        "What did I cook on the 3rd of last month?": "2023-04-03/2023-04-04",
        "What did we see on April 3-5?": "2023-04-03/2023-04-06",
        "What did we see from the 3rd to the 5th of April?": "2023-04-03/2023-04-06",
        "What did I buy on 12 October last year?": "2022-10-12/2022-10-13",
        # months
        "What did I buy in March?": "2023-03-01/2023-04-01",
        "what did i buy in may?": "2023-05-01/2023-06-01",
        "What did I buy in July?": "2022-07-01/2022-08-01",
        "What did I buy last March?": "2023-03-01/2023-04-01",
        "What did I buy this March?": "2023-03-01/2023-04-01",
        "What happens next March?": "2024-03-01/2024-04-01",
        "Where did I travel last May?": "2022-05-01/2022-06-01",
        "Which flat did I rent in March 2021?": "2021-03-01/2021-04-01",
        "Which flat did I rent in may 2021?": "2021-05-01/2021-06-01",
        "Which flat did I rent in Oct 2019?": "2019-10-01/2019-11-01",
        "What did I plant in April last year?": "2022-04-01/2022-05-01",
        "What did we agree on in the month of April?": "2023-04-01/2023-05-01",
        "What was the budget for March?": "2023-03-01/2023-04-01",
        "What did I plant in early April?": "2023-04-01/2023-04-11",
        "What did I plant in mid-April?": "2023-04-11/2023-04-21",
        "What did I plant in late April?": "2023-04-21/2023-05-01",
        "What did I plant at the end of February 2023?": "2023-02-20/2023-03-01",
        "What did I plant early in March?": "2023-03-01/2023-03-11",
        "Where were we in the first week of April?": "2023-04-01/2023-04-08",
        "Where were we in the last week of April?": "2023-04-24/2023-05-01",
        "Where were we on the first Monday of April?": "2023-04-03/2023-04-04",
        "Where were we in the last month of 2022?": "2022-12-01/2023-01-01",
        "Where were we on the last Friday in April?": "2023-04-28/2023-04-29",
        "Where were we on the second weekend of April?": "2023-04-08/2023-04-10",
        "Where were we in the first half of April?": "2023-04-01/2023-04-16",
        # seasons
        "Where did we swim in the summer of 2022?": "2022-06-01/2022-09-01",
        "Where did we swim in summer 2021?": "2021-06-01/2021-09-01",
        "Where did we swim last summer?": "2022-06-01/2022-09-01",
        "What did I plant this spring?": "2023-03-01/2023-06-01",
        "What did I plant in the spring?": "2023-03-01/2023-06-01",
        "Where did we hike last fall?": "2022-09-01/2022-12-01",
        "Where did we hike in autumn?": "2022-09-01/2022-12-01",
        "Where did we ski last winter?": "2022-12-01/2023-03-01",
        "Who visited us towards the end of last summer?": "2022-08-01/2022-09-01",
        # holidays
        "What did I get for Christmas?": "2022-12-24/2022-12-27",
        "Who cooked on Christmas Day?": "2022-12-25/2022-12-26",
        "Who cooked on Christmas Eve 2021?": "2021-12-24/2021-12-25",
        "Where did we dance on New Year's Eve?": "2022-12-31/2023-01-01",
        "Where did we dance on New Year’s Eve?": "2022-12-31/2023-01-01",
        "What did I give Ben on Valentine's Day?": "2023-02-14/2023-02-15",
        "What did I give Ben on valentines day?": "2023-02-14/2023-02-15",
        "Who hosted us on Thanksgiving?": "2022-11-24/2022-11-25",
        "What did I order on Black Friday?": "2022-11-25/2022-11-26",
        "Where were we at Easter?": "2023-04-07/2023-04-11",
        "Where were we at Easter 2021?": "2021-04-02/2021-04-06",
        "Which film did we watch on Halloween last year?": "2022-10-31/2022-11-01",
        # years, decades, quarters
        "Which car did I drive in 2021?": "2021-01-01/2022-01-01",
        "Which car did I drive in the year 2019?": "2019-01-01/2020-01-01",
        "Which car did I drive last year?": "2022-01-01/2023-01-01",
        "What are my goals for next year?": "2024-01-01/2025-01-01",
        "How much have I saved this year?": "2023-01-01/2024-01-01",
        "Which car did I drive in early 2021?": "2021-01-01/2021-05-01",
        "Which car did I drive late last year?": "2022-09-01/2023-01-01",
        "Which car did I drive in the second half of 2021?": "2021-07-01/2022-01-01",
        "Which bands did I see in the 90s?": "1990-01-01/2000-01-01",
        "Which bands did I see in the early '90s?": "1990-01-01/1993-01-01",
        "Which bands did I see in the late eighties?": "1987-01-01/1990-01-01",
        "Which bands did I see in the 2010s?": "2010-01-01/2020-01-01",
        "What was revenue in Q3 2022?": "2022-07-01/2022-10-01",
        "What was revenue in Q3 of last year?": "2022-07-01/2022-10-01",
        "What was revenue in the third quarter?": "2022-07-01/2022-10-01",
        "What was revenue in Q1?": "2023-01-01/2023-04-01",
        "What was revenue last quarter?": "2023-01-01/2023-04-01",
        # weeks and weekends
        "What did we discuss last week?": "2023-05-22/2023-05-29",
        "What did we discuss in last week's meeting?": "2023-05-22/2023-05-29",
        "What did we discuss the week before last?": "2023-05-15/2023-05-22",
        "What is left to do this week?": "2023-05-29/2023-06-05",
        "What is on next week?": "2023-06-05/2023-06-12",
        "What did we discuss in the week of May 8?": "2023-05-08/2023-05-15",
        "What did we discuss in the week of May 11?": "2023-05-08/2023-05-15",
        "Where were we on the weekend of May 13?": "2023-05-13/2023-05-15",
        "Where did we go last weekend?": "2023-05-27/2023-05-29",
        "Where did we go this past weekend?": "2023-05-27/2023-05-29",
        "Where did we go over the weekend?": "2023-05-27/2023-05-29",
        "Where did we go the weekend before last?": "2023-05-20/2023-05-22",
        "Who is visiting this weekend?": "2023-06-03/2023-06-05",
        "Who will visit next weekend?": "2023-06-10/2023-06-12",
        "Who will visit this coming weekend?": "2023-06-03/2023-06-05",
        "What did we discuss earlier last week?": "2023-05-22/2023-05-29",
        # weekdays
        "What did I say last Tuesday?": "2023-05-23/2023-05-24",
        "What did I say last Monday?": "2023-05-29/2023-05-30",
        "What did I say on Monday?": "2023-05-29/2023-05-30",
        "What did I say on Wednesday?": "2023-05-24/2023-05-25",
        "What did I say on Tuesday?": "2023-05-23/2023-05-24",
        "What did I say on Monday morning?": "2023-05-29T05:00/2023-05-29T12:00",
        "What did we decide in Friday's call?": "2023-05-26/2023-05-27",
        "Who is coming this Friday?": "2023-06-02/2023-06-03",
        "Who came this Monday?": "2023-05-29/2023-05-30",
        "Who is coming next Friday?": "2023-06-09/2023-06-10",
        "What did I say Tuesday last week?": "2023-05-23/2023-05-24",
        "What did I say on Monday of last week?": "2023-05-22/2023-05-23",
        "What did I say last week on Thursday?": "2023-05-25/2023-05-26",
        "What did I say last week on Thurs?": "2023-05-25/2023-05-26",
        # days and nights
        "What did I eat yesterday?": "2023-05-29/2023-05-30",
        "What did I eat yesterday evening?": "2023-05-29T18:00/2023-05-30",
        "What did I eat today?": "2023-05-30/2023-05-31",
        "What did I eat the day before yesterday?": "2023-05-28/2023-05-29",
        "What am I doing tomorrow?": "2023-05-31/2023-06-01",
        "What did we talk about last night?": "2023-05-29T18:00/2023-05-30T06:00",
        "What did we talk about late last night?": "2023-05-29T18:00/2023-05-30T06:00",
        "What did we talk about this morning?": "2023-05-30T05:00/2023-05-30T12:00",
        "What did we talk about two nights ago?": "2023-05-28T18:00/2023-05-29T06:00",
        "What did we talk about on the evening of 7 April?": "2023-04-07T18:00/2023-04-08",
        # counted back
        "What did I buy 10 days ago?": "2023-05-20/2023-05-21",
        "What did I buy about 10 days ago?": "2023-05-18/2023-05-23",
        "What did I buy a day ago?": "2023-05-29/2023-05-30",
        "What did I buy twenty-five days ago?": "2023-05-05/2023-05-06",
        "What did I buy a few days ago?": "2023-05-25/2023-05-29",
        "What did I buy a couple of days ago?": "2023-05-27/2023-05-29",
        "What did I buy a week ago?": "2023-05-20/2023-05-27",
        "What did I buy two weeks ago?": "2023-05-13/2023-05-20",
        "What did I buy two weeks ago today?": "2023-05-16/2023-05-17",
        "What did I buy a couple of weeks ago?": "2023-05-06/2023-05-20",
        "What did I buy two or three weeks ago?": "2023-05-06/2023-05-20",
        "What did I buy a fortnight ago?": "2023-05-13/2023-05-20",
        "What did I buy three months ago?": "2023-02-13/2023-03-16",
        "What did I buy half a year ago?": "2022-11-15/2022-12-16",
        "What did I buy a year ago?": "2021-11-30/2022-11-30",
        "What did I buy two years back?": "2020-11-30/2021-11-30",
        "Where did I live a decade ago?": "2011-05-30/2015-05-30",
        "Where was I two weekends ago?": "2023-05-20/2023-05-22",
        "What did I tell you an hour ago?": "2023-05-30T13:00/2023-05-30T14:00",
        "Where will I be two weeks from now?": "2023-06-10/2023-06-17",
        # up to now
        "What did I read in the last 5 days?": "2023-05-25/2023-05-31",
        "What did I read in the past three weeks?": "2023-05-09/2023-05-31",
        "What did I read over the past year?": "2022-05-30/2023-05-31",
        "What did I read over the last week?": "2023-05-23/2023-05-31",
        "What did I read this past month?": "2023-04-30/2023-05-31",
        "What did I read in the last couple of months?": "2023-02-28/2023-05-31",
        "What did I read in last 3 months?": "2023-02-28/2023-05-31",
        "Did anything fail in the last 24 hours?": "2023-05-29T14:30/2023-05-31",
        "What did I read earlier this year?": "2023-01-01/2023-05-31",
        "What is left to do later this year?": "2023-05-30/2024-01-01",
        "What is planned for the next two weeks?": "2023-05-30/2023-06-14",
        # from one to the other
        "What did I learn between March and May 2023?": "2023-03-01/2023-06-01",
        "What did I learn between November and February?": "2022-11-01/2023-03-01",
        "What did I learn from June 3 to June 10?": "2022-06-03/2022-06-11",
        "What did I learn from 2019 to 2021?": "2019-01-01/2022-01-01",
        "What did I learn in 2019-2021?": "2019-01-01/2022-01-01",
        "What did I learn from June 2022 to August?": "2022-06-01/2022-09-01",
        "What did I learn between early March and mid-April?": "2023-03-01/2023-04-21",
        "Which books did I finish in January and March?": "2023-01-01/2023-04-01",
        "Was it in March, April or May?": "2023-03-01/2023-06-01",
        "Did we meet on Thursday or Friday?": "2023-05-25/2023-05-27",
        # open on one side
        "Where did I live before June 2022?": "/2022-06-01",
        "Where did I work until March?": "/2023-04-01",
        "What was done by the end of April?": "/2023-05-01",
        "What was my address as of May?": "/2023-06-01",
        "What was my address as of 14 March 2022?": "/2022-03-15",
        "What did I decide after May 7?": "2023-05-08/2023-05-31",
        "What have I read since January?": "2023-01-01/2023-05-31",
        "What have I read since last Christmas?": "2022-12-24/2023-05-31",
        "What have I read since yesterday?": "2023-05-29/2023-05-31",
        "What have I read from March onwards?": "2023-03-01/2023-05-31",
        "What will change after July 2025?": "2025-08-01/",
        "What is due after next week?": "2023-06-12/",
        # near and beside a date
        "Where did we camp around mid-July?": "2022-07-08/2022-07-25",
        "Where did we camp around May 7?": "2023-05-04/2023-05-11",
        "What did I write the week before May 8, 2023?": "2023-05-01/2023-05-08",
        "What did I write two weeks before September 22, 2022?": "2022-09-05/2022-09-12",
        "What did I write in the week after Easter?": "2023-04-11/2023-04-18",
        "What did I write the day after May 7?": "2023-05-08/2023-05-09",
        "What did I write the weekend before March 6, 2023?": "2023-03-04/2023-03-06",
        "What did I write the weekend after April 8, 2023?": "2023-04-15/2023-04-17",
        "What did I write the weekend before April 9, 2023?": "2023-04-01/2023-04-03",
        "What did I write the Monday after Christmas Day 2022?": "2022-12-26/2022-12-27",
        "What did I write the Friday before May 7, 2023?": "2023-05-05/2023-05-06",
        "What did I write the Sunday before May 7, 2023?": "2023-04-30/2023-05-01",
        "What did I write the night before May 7?": "2023-05-06T18:00/2023-05-07T06:00",
        # several times in one question
        "In 2023, what did I do last week?": "2023-05-22/2023-05-29",
        "What had she done last week, as she told me on October 4, 2022?": "2022-10-04/2022-10-05",
        # the preposition belongs to the verb
        "Who stopped by last Friday?": "2023-05-26/2023-05-27",
        "Whose cat did I look after last week?": "2023-05-22/2023-05-29",
        # looking ahead
        "What should I give Ben for Christmas?": "2023-12-24/2023-12-27",
        "What will I do on Monday?": "2023-06-05/2023-06-06",
        "Is the meeting on Thursday or Friday?": "2023-06-01/2023-06-03",
        "What are my plans for the summer?": "2023-06-01/2023-09-01",
        "When am I flying in July?": "2023-07-01/2023-08-01",
    },
    SATURDAY: {
        "What are we doing this weekend?": "2023-06-03/2023-06-05",
        "What are we doing this coming weekend?": "2023-06-10/2023-06-12",
        "What did we do last weekend?": "2023-05-27/2023-05-29",
        "What did we do this Friday?": "2023-06-02/2023-06-03",
        "What did we do in May?": "2023-05-01/2023-06-01",
    },
    MONDAY: {
        "What did we do this weekend?": "2023-06-03/2023-06-05",
        "What did I say on Monday?": "2023-05-29/2023-05-30",
        "What did I say last week?": "2023-05-29/2023-06-05",
    },
    MONTH_END: {
        "What did I pay last month?": "2023-02-01/2023-03-01",
        "What did I pay a month ago today?": "2023-02-28/2023-03-01",
        "What did I pay in the past month?": "2023-02-28/2023-04-01",
        "What did I pay in March?": "2023-03-01/2023-04-01",
        "What did I pay last March?": "2022-03-01/2022-04-01",
        "What is due next month?": "2023-04-01/2023-05-01",
    },
    LEAP_MONTH_END: {
        "What did I pay a month ago today?": "2024-02-29/2024-03-01",
        "What did I pay a month ago?": "2024-02-14/2024-03-16",
        "What did I pay in February?": "2024-02-01/2024-03-01",
        "What did I pay in late February?": "2024-02-21/2024-03-01",
        "What did I do this Easter?": "2024-03-29/2024-04-02",
    },
    LEAP_DAY: {
        "Where was I a year ago today?": "2023-02-28/2023-03-01",
        "Where was I on February 29?": "2024-02-29/2024-03-01",
        "Where was I on February 28, 2023?": "2023-02-28/2023-03-01",
    },
    NEW_YEAR: {
        "What did I do last month?": "2023-12-01/2024-01-01",
        "What did I do last week?": "2023-12-25/2024-01-01",
        "What did I do in December?": "2023-12-01/2024-01-01",
        "What did I do on New Year's Eve?": "2023-12-31/2024-01-01",
        "What did I do three days ago?": "2023-12-30/2023-12-31",
        "What did I do last quarter?": "2023-10-01/2024-01-01",
        "What did I do between December 29 and January 1?": "2023-12-29/2024-01-02",
        "Where did we ski this winter?": "2023-12-01/2024-03-01",
        "Where did we ski last winter?": "2022-12-01/2023-03-01",
        "Where was I on February 29?": "2020-02-29/2020-03-01",
    },
    DECEMBER: {
        "What did I get this Christmas?": "2023-12-24/2023-12-27",
        "Where did we swim this summer?": "2023-06-01/2023-09-01",
        "Where will we swim this summer?": "2024-06-01/2024-09-01",
        "What will I do in March?": "2024-03-01/2024-04-01",
    },
    SUMMER_TIME: {
        "What did I do today?": "2023-03-26/2023-03-27",
        "What did I do yesterday?": "2023-03-25/2023-03-26",
        "What did I do last month?": "2023-02-01/2023-03-01",
    },
    EAST: {
        "What did I do today?": "2023-01-01/2023-01-02",
        "What did I do yesterday?": "2022-12-31/2023-01-01",
        "What did I do last year?": "2022-01-01/2023-01-01",
        "What did I do this year?": "2023-01-01/2024-01-01",
    },
}

# The event, and the range once it is known to have happened on Monday 17 April 2023 at nine.
EVENTS = {
    "What did I pack the week before the trip?": ("the trip", "2023-04-10/2023-04-17"),
    "What did I pack two weeks before my birthday?": ("my birthday", "2023-03-31/2023-04-07"),
    "What did I pack two days after my birthday?": ("my birthday", "2023-04-19/2023-04-20"),
    "What did I pack in the two weeks before the launch?": ("the launch", "2023-04-03/2023-04-17"),
    "What did I pack the day before the exam?": ("the exam", "2023-04-16/2023-04-17"),
    "What did I pack the night before the exam?": ("the exam", "2023-04-16T18:00/2023-04-17T06:00"),
    "What did I pack the weekend after the conference?": ("the conference", "2023-04-22/2023-04-24"),
    "What did I pack the month after I moved?": ("I moved", "2023-04-18/2023-05-18"),
    "What did I spend in the month of the wedding?": ("the wedding", "2023-04-01/2023-05-01"),
    "Who called on the morning of the interview?": ("the interview", "2023-04-17T05:00/2023-04-17T12:00"),
    "Who called on my birthday?": ("my birthday", "2023-04-17/2023-04-18"),
    "Who spoke during the conference?": ("the conference", "2023-04-14/2023-04-21"),
    "Which museums did we see during my holiday in Rome?": ("my holiday in Rome", "2023-04-14/2023-04-21"),
    "Which museums did I see when I was in Japan?": ("I was in Japan", "2023-04-14/2023-04-21"),
    "When I was in Japan, which museums did I see?": ("I was in Japan", "2023-04-14/2023-04-21"),
    "Where did I work before the move?": ("the move", "/2023-04-17T09:00"),
    "Which doctor did I see before I broke my arm?": ("I broke my arm", "/2023-04-17T09:00"),
    "What did I buy after I moved?": ("I moved", "2023-04-17T09:00/2023-05-31"),
    "Which call did Ben make after the audit to calm down?": ("the audit", "2023-04-17T09:00/2023-05-31"),
    "What has changed since the wedding?": ("the wedding", "2023-04-17/2023-05-31"),
    "What has changed since Anna left?": ("Anna left", "2023-04-17/2023-05-31"),
    "Where did we stay until the house was ready?": ("the house was ready", "/2023-04-18"),
}

NOTHING = [
    # no time at all
    "",
    "What is my sister's name?",
    "May I ask you something?",
    "I may have told you about my boss, who is he?",
    "Which dog may sleep on the sofa?",
    "What did May say?",
    "What did I tell April about the house?",
    "Did June call back?",
    "What did I buy for June?",
    "Which poem is by April?",
    "What did May's brother cook?",
    "How far did we march up the hill?",
    "Did we march 10 miles?",
    "How many may 5 of us bring?",
    "Was this march for the climate?",
    "When was the last march for the climate?",
    "Who took part in the March on Washington?",
    "What did I think of March for Our Lives?",
    "Who gave me a second opinion?",
    "What was the last book I read?",
    "What was the last thing you said?",
    "Who was my first teacher?",
    "What happened to my arm in the fall?",
    "Did the hot spring smell?",
    "Where is my summer camp shirt?",
    "What did I wear during summer camp?",
    "Which Christmas songs do I know?",
    "Where did I buy the Christmas tree?",
    # vague
    "What did I eat recently?",
    "What have I been reading lately?",
    "What did we talk about the other day?",
    "What did we discuss last time?",
    "What did I paint years ago?",
    "Where did I live a long time ago?",
    "What happened the next week?",
    "What happened in the past months?",
    "What is on a week from Monday?",
    "What did I do in the winter of 2022?",
    # durations and counts
    "How many days did the trip take?",
    "How many days ago did I see the dentist?",
    "How long ago did I see the dentist?",
    "How long did the repair take?",
    "I was in Rome for three weeks, what did I see?",
    "Did the milk last a week?",
    "How many weeks before May 7 did I start?",
    "How many days after the trip did I call?",
    "What did I buy more than two years ago?",
    "What did I do in my last week at school?",
    "What did we eat on our last night in Paris?",
    "What did we eat on our last Monday in Paris?",
    "What did we learn in the last year of school?",
    # figures
    "Does it run on Python 3.11?",
    "Who has the number 555-2021?",
    "Did it cost $2021?",
    "Can I say it in 2000 words?",
    "Who stayed in room 2021?",
    "Did I like Blade Runner 2049?",
    "Is the shop open 24/7?",
    "Was it a 50/50 chance on 1/2 of them?",
    "What did I pay on 03/04/2023?",
    "What happened on 2023-02-30?",
    "Is build 2023-13-01 broken?",
    "Did we score May 10-3?",
    "Which digit stands in the 10s place?",
    "What happened on 31 April 2023?",
    # habits
    "Who teaches Sunday school?",
    "Where do I run on Mondays?",
    "What do I usually do in summer?",
    "What do I always eat on Monday?",
    "What does Ben like to eat at Christmas?",
    "What did I wear on Friday the 13th?",
    "Whose birthday is in June?",
    "Which of my friends were born in June?",
    # times that exclude each other
    "Was the trip in May 2022 longer than the one in July 2022?",
    "Did I run more last week than two months ago?",
    # no event to look up
    "What did I play when I was a kid?",
    "What do I do when I get home?",
    "Who is the ship named after the queen of?",
    "What day of the week is it?",
    "Have I been there before?",
    "What did I learn throughout my life?",
    "What happened between the trip and the wedding?",
]


def read(text, tz):
    """Read `start/end` in a zone; an empty side is the calendar's own end."""
    start, end = text.split("/")
    first = datetime.fromisoformat(start or "0001-01-02").replace(tzinfo=tz)
    return TimeRange(first, datetime.fromisoformat(end or "9999-12-31").replace(tzinfo=tz))


@pytest.mark.parametrize(
    ("question", "reference", "expected"),
    [(question, asked, wanted) for asked, table in RANGES.items() for question, wanted in table.items()],
)
def test_a_question_names_the_range_a_person_would_mean(question, reference, expected):
    mention = time_mention(question, reference)
    assert mention is not None
    assert mention.event is None
    assert mention.range == read(expected, reference.tzinfo)
    assert mention.range.start.tzinfo is UTC
    assert mention.phrase in question


@pytest.mark.parametrize(("question", "expected"), EVENTS.items())
def test_an_event_becomes_a_range_once_its_moment_is_known(question, expected):
    event, around = expected
    mention = time_mention(question, TUESDAY)
    assert mention is not None
    assert mention.range is None
    assert mention.event == event
    assert mention.around(datetime(2023, 4, 17, 9, 0, tzinfo=UTC)) == read(around, UTC)


@pytest.mark.parametrize("question", NOTHING)
def test_what_only_looks_like_a_time_is_none(question):
    assert time_mention(question, TUESDAY) is None


@pytest.mark.parametrize(
    ("question", "phrase", "rest"),
    [
        ("What did we discuss last week?", "last week", "What did we discuss?"),
        ("What did I cook on May 7, 2023 for Anna?", "on May 7, 2023", "What did I cook for Anna?"),
        ("Last summer, where did we swim?", "Last summer", "where did we swim?"),
        ("Back in  March 2021 I moved: where to?", "Back in  March 2021", "I moved: where to?"),
        ("What did we decide in last week's meeting?", "last week's", "What did we decide in meeting?"),
        ("yesterday", "yesterday", ""),
        ("Which race did I take part in a month ago?", "a month ago", "Which race did I take part in?"),
        ("What did I pack the week before the trip to Rome?", "the week before the trip to Rome", "What did I pack?"),
        ("Who stopped by yesterday?", "yesterday", "Who stopped by?"),
    ],
)
def test_the_phrase_stands_as_written_and_the_rest_is_the_question_without_it(question, phrase, rest):
    mention = time_mention(question, TUESDAY)
    assert (mention.phrase, mention.rest) == (phrase, rest)


def test_a_range_holds_its_start_and_not_its_end():
    march = time_mention("What did I buy in March?", TUESDAY).range
    assert march.holds(datetime(2023, 3, 1, tzinfo=UTC))
    assert march.holds(datetime(2023, 3, 31, 23, 59, 59, tzinfo=UTC))
    assert not march.holds(datetime(2023, 4, 1, tzinfo=UTC))
    assert not march.holds(datetime(2023, 2, 28, 23, 59, 59, tzinfo=UTC))


def test_a_day_begins_at_the_reference_s_own_midnight():
    today = time_mention("What did I say today?", EAST).range
    assert today.holds(datetime(2022, 12, 31, 18, 15, tzinfo=UTC))
    assert not today.holds(datetime(2022, 12, 31, 18, 14, tzinfo=UTC))


def test_the_day_clocks_go_forward_has_23_hours():
    today = time_mention("What did I say today?", SUMMER_TIME).range
    assert today.end.astimezone(UTC) - today.start.astimezone(UTC) == timedelta(hours=23)


@pytest.mark.parametrize("offset", [-23, -12, 0, 14, 23])
def test_open_ends_survive_every_time_zone(offset):
    reference = TUESDAY.astimezone(timezone(timedelta(hours=offset)))
    before = time_mention("Where did I live before 2020?", reference).range
    after = time_mention("What changes after 2030?", reference).range
    assert before.start.astimezone(UTC) < before.end
    assert after.end.astimezone(UTC) > after.start
    assert before.holds(datetime(1066, 10, 14, tzinfo=UTC))


def test_the_moment_of_an_event_counts_in_the_reference_s_zone():
    mention = time_mention("What did I do the day before the party?", EAST)
    # 20:00 in Greenwich is the next day in Kathmandu.
    assert mention.around(datetime(2022, 12, 24, 20, 0, tzinfo=UTC)) == read("2022-12-24/2022-12-25", EAST.tzinfo)


def test_a_naive_time_is_refused_everywhere():
    naive = datetime(2023, 5, 30)  # noqa: DTZ001
    event = time_mention("What did I pack before the trip?", TUESDAY)
    for refused in (
        lambda: time_mention("yesterday", naive),
        lambda: event.around(naive),
        lambda: time_mention("yesterday", TUESDAY).range.holds(naive),
        lambda: TimeRange(naive, TUESDAY),
    ):
        with pytest.raises(InputError, match="time zone"):
            refused()


def test_an_empty_range_is_refused():
    with pytest.raises(InputError, match="must end after it starts"):
        TimeRange(TUESDAY, TUESDAY)


def test_a_mention_with_a_range_has_no_event_to_place():
    with pytest.raises(InputError, match="not tied to an event"):
        time_mention("What did I do in March?", TUESDAY).around(TUESDAY)


def test_of_a_pasted_document_only_the_beginning_is_read():
    assert time_mention("word " * 1000 + "yesterday", TUESDAY) is None
